# What is installed: public headers and nothing else of the source, data, documents, programs that work where the tree was moved to; the components alone.
. "$(dirname "$0")/../cli/lib.sh"
here=$MUSTER_SOURCE_DIR/tests/package

# Installed, and then moved.
expect_exit 0 cmake --install "$MUSTER_BIN/.." --prefix "$PWD/first"
rm -rf "$MUSTER_PREFIX"
mv first "$MUSTER_PREFIX"
prefix=$MUSTER_PREFIX

for file in bin/muster share/muster/site-configs/polaris.toml share/doc/muster/docs/sites.md share/muster/topologies/polaris.xml \
    share/muster/templates/slurm.mustache share/man/man1/muster-run.1 share/bash-completion/completions/muster{,-bench} share/doc/muster/README.md \
    share/doc/muster/LICENSE share/doc/muster/CHANGELOG.md; do
    expect_true test -e "$prefix/$file"
done
if [ "$MUSTER_HAVE_HDF5" = ON ]; then
    for file in bin/muster-stage bin/muster-bench share/doc/muster/docs/dataset-format.md; do
        expect_true test -e "$prefix/$file"
    done
    expect_exit 0 "$prefix/bin/muster" stage --help
    expect_exit 2 "$prefix/bin/muster" stage convert --images x
fi
expect_exit 0 "$prefix/bin/muster" script --site polaris --gpus 8 --time 30min --account A --queue debug -- ./a.out
expect_exit 0 "$prefix/bin/muster" plan -n 4 --topology "$prefix/share/muster/topologies/polaris.xml"
expect_exit 0 "$prefix/bin/muster" plan -n 4 --topology polaris
expect_contains stdout "0000:07:00.0"

# No library of a program's own, no benchmark for muster's developers.
found=$(find "$prefix" -name 'libmuster_launch*' -o -name 'libmuster_bench*' -o -name 'libmuster_jobscripts*' -o -name 'muster-bench-*' -not -path '*/man/*')
[ -z "$found" ] || fail "installed, and not to be: $found"

# The public headers are those listed, and include nothing that is not installed.
(cd "$prefix/include/muster" && find . -type f | sed 's#^\./##' | LC_ALL=C sort) >headers
list=$here/public_headers.txt
[ "$MUSTER_HAVE_HDF5" = ON ] || { grep -v '^io/' "$list" >fewer && list=fewer; }
diff "$list" headers || fail "the installed headers are not those of public_headers.txt"
sed 's/.*/#include "&"/' headers >all.cpp
expect_exit 0 "$CXX" -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I "$prefix/include/muster" all.cpp

# The next installation keeps site files that were edited, and removes what only the former one had; the module file names this place.
expect_contains "$prefix/share/muster/modulefiles/tcl/muster/$("$prefix/bin/muster" --version | sed -n 's/^muster \([0-9.]*\).*/\1/p')" 'conflict muster' 'module-whatis' ModulesHelp
expect_not_contains "$(echo "$prefix"/share/muster/modulefiles/lmod/muster/*.lua)" MANPATH_
echo '# ours' >>"$prefix/share/muster/site-configs/polaris.toml"
: >"$prefix/share/muster/old.txt"
echo share/muster/old.txt >>"$prefix/share/muster/installed-files.txt"
: >"$prefix/share/muster/mine.txt"
expect_exit 0 cmake --install "$MUSTER_BIN/.." --prefix "$prefix"
expect_contains stdout 'polaris.toml was edited: kept as'
expect_contains "$prefix/etc/muster/sites/polaris.toml" '# ours'
expect_not_contains "$prefix/share/muster/site-configs/polaris.toml" '# ours'
expect_true test ! -e "$prefix/share/muster/old.txt" -a -e "$prefix/share/muster/mine.txt" -a -x "$prefix/bin/muster"
rm -r "$prefix/etc"

# Components. The launcher needs neither headers nor libraries.
install_only() { expect_exit 0 cmake --install "$MUSTER_BIN/.." --component "$1" --prefix "$PWD/$1"; }
install_only launcher
expect_exit 0 launcher/bin/muster run -q -n 1 -- true
expect_exit 0 launcher/bin/muster script --site polaris --gpus 8 --time 30min --account A --queue debug -- ./a.out
found=$(find launcher -type d \( -name include -o -name lib -o -name libexec \) -o -path '*/bin/muster-*')
[ -z "$found" ] || fail "in the component launcher: $found"
# A relative prefix is meant from this folder.
expect_exit 0 cmake --install "$MUSTER_BIN/.." --component launcher --prefix below/here
expect_exit 0 below/here/bin/muster run -q -n 1 -- true
expect_equal "$(grep -c '^\.\./\|^/' below/here/share/muster/installed-files.txt)" 0 'installed files that are not below the prefix'
expect_equal "$(sort below/here/share/muster/installed-files.txt)" "$(sort launcher/share/muster/installed-files.txt)" 'what is installed by a relative prefix'
expect_true grep -rqF "$PWD/below/here" below/here/share/muster/modulefiles
install_only libraries
found=$(find libraries -type f ! -name 'libmuster_comm*')
[ -z "$found" ] || fail "in the component libraries: $found"
find libraries -name 'libmuster_comm.so.*' | grep -q . || fail "no libmuster_comm.so in the component libraries"

# The commands by which docs/install.md takes muster out of a shared folder leave nothing of it, also where Python has run, and nothing else is gone.
expect_exit 0 cmake --install "$MUSTER_BIN/.." --prefix "$PWD/shared"
[ ! -e shared/lib/muster/python ] || python3 -m compileall -q shared/lib/muster
mkdir shared/apart && : >shared/apart/file
sed -n '/^cd \/apps\/muster/,/^```/p' "$MUSTER_SOURCE_DIR/docs/install.md" | grep -v '^```' | sed "s|/apps/muster|$PWD/shared|" >remove.sh
expect_true test -s remove.sh
expect_exit 0 env HOME="$PWD" bash remove.sh
expect_equal "$(find shared)" "$(printf '%s\n' shared shared/apart shared/apart/file)" 'what is left'
