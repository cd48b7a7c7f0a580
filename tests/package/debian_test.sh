# The Debian packages, made by cmake/muster_packages.cmake of a few files in place of the portable build's: what they hold, and what happens when one is removed.
. "$(dirname "$0")/../cli/lib.sh"
command -v cpack >/dev/null && command -v dpkg-deb >/dev/null || skip "needs cpack and dpkg-deb"
library=$(find "$MUSTER_PREFIX" -name 'libmuster_comm.so.*' -type f | head -n 1)
[ -n "$library" ] || skip "no libmuster_comm was built"

mkdir -p project/comm files
for part in cmake packaging comm/c_api; do ln -s "$MUSTER_SOURCE_DIR/$part" project/$part; done
printf '#!/bin/bash{{#login}} -l{{/login}}\n' >files/slurm.mustache
echo 'import sys' >files/module.py
cp "$library" files/libmuster_comm.so.1
printf '#!/bin/sh\n' >files/muster-bench
cat >project/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(muster VERSION 0.1.0 LANGUAGES NONE DESCRIPTION "x")
set(CMAKE_INSTALL_LIBDIR lib)
set(CMAKE_INSTALL_INCLUDEDIR include)
include(cmake/muster_install.cmake)
install(FILES ../files/slurm.mustache DESTINATION share/muster/templates COMPONENT launcher)
install(FILES ../files/libmuster_comm.so.1 DESTINATION lib COMPONENT libraries)
install(FILES ../files/module.py DESTINATION lib/muster/python/muster COMPONENT python)
set(MUSTER_BUILT_PARTS bench jobs keras)
install(FILES ../files/module.py DESTINATION lib/muster/python/muster/keras COMPONENT keras)
install(PROGRAMS ../files/muster-bench DESTINATION bin COMPONENT bench)
muster_install_pkg_config(muster muster_comm "x")
include(cmake/muster_packages.cmake)
CMAKE
expect_exit 0 cmake -S project -B build
expect_exit 0 cpack -B packages --config build/CPackConfig.cmake

package() { echo packages/"$1"_0.1.0_amd64.deb; }
for name in muster python3-muster muster-dev muster-bench python3-muster-keras; do expect_true test -e "$(package $name)"; done
comm=$(ls packages/libmuster-comm*.deb)

# A part of muster's is a package of its own, whose files no other has.
for each in muster-bench:./usr/bin/muster-bench python3-muster-keras:./usr/lib/muster/python/muster/keras/module.py; do
    dpkg-deb --fsys-tarfile "$(package ${each%:*})" | tar -t >held
    expect_contains held "${each#*:}"
    for name in muster python3-muster; do
        dpkg-deb --fsys-tarfile "$(package $name)" | tar -t >held
        expect_not_contains held "${each#*:}"
    done
done
dpkg-deb --info "$(package muster-bench)" >info
expect_contains info 'Depends: libc6 (>= 2.28), muster (= 0.1.0)'

# The loader's cache is seen to by a trigger, not by scripts.
dpkg-deb --ctrl-tarfile "$comm" | tar -t >control
expect_contains control ./triggers
expect_not_contains control postinst postrm
dpkg-deb --info "$comm" triggers >triggers
expect_contains triggers ldconfig

# pkg-config of another architecture does not find it by chance.
dpkg-deb --fsys-tarfile "$(package muster-dev)" | tar -x -O ./usr/lib/x86_64-linux-gnu/pkgconfig/muster.pc >muster.pc
expect_contains muster.pc 'prefix=/usr' 'libdir=${prefix}/lib'
for name in muster python3-muster muster-dev muster-bench python3-muster-keras; do
    dpkg-deb --fsys-tarfile "$(package $name)" | tar -x -O ./usr/share/doc/$name/copyright >copyright
    expect_contains copyright 'Copyright: 2'
done

# What Python compiles beside the package's files goes with them.
dpkg-deb --ctrl-tarfile "$(package python3-muster)" | tar -x ./prerm
expect_true test -x prerm
mkdir -p bin lib/muster/__pycache__ other/__pycache__
: >lib/muster/module.py
: >lib/muster/__pycache__/module.cpython-311.pyc
printf '#!/bin/sh\necho /.\necho %s\n' "$PWD/lib/muster" "$PWD/lib/muster/module.py" >bin/dpkg
sed -i '1!{/^#!/d}' bin/dpkg
chmod +x bin/dpkg
PATH=$PWD/bin:$PATH expect_exit 0 ./prerm remove
expect_true test ! -e lib/muster/__pycache__ -a -e lib/muster/module.py -a -e other/__pycache__

command -v lintian >/dev/null || exit 0
lintian --allow-root --tags script-not-executable,unusual-interpreter,maintscript-calls-ldconfig,copyright-without-copyright-notice,pkg-config-unavailable-for-cross-compilation,maintainer-script-empty packages/*.deb >hints 2>&1 || true
[ ! -s hints ] || { cat hints; fail "lintian has something to say"; }
