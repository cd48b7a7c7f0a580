# Where programs and libraries look for libraries: in whole paths alone. The loader takes an empty or relative one for the working directory, where somebody else
# may have put a library.
. "$MUSTER_SOURCE_DIR/tests/cli/lib.sh"

look() {
  local file path
  for file in "$@"; do
    [ -f "$file" ] || continue
    path=$(readelf -d "$file" 2>>"$ERR" | sed -n 's/.*(R\(UN\)\?PATH).*\[\(.*\)\]$/\2/p')
    [ -n "$path" ] || continue
    looked=$((looked + 1))
    case :$path: in
    *::* | *:[!/\$]*) fail "$file looks for libraries in the working directory: [$path]" ;;
    esac
  done
}

looked=0
look "$MUSTER_BIN"/muster* "$MUSTER_BIN"/../comm/*.so* "$MUSTER_PREFIX"/bin/* "$MUSTER_PREFIX"/lib*/* "$MUSTER_PREFIX"/lib*/muster/*
look "$MUSTER_BIN"/../python/*.so
for module in $(find "$MUSTER_PREFIX" -name '_muster_*.abi3.so'); do
  looked=$((looked + 1))
  look "$module"
  readelf -d "$module" | sed -n 's/.*(R\(UN\)\?PATH).*\[\(.*\)\]$/\2/p' | grep '/comm' && fail "$module looks for its library in a build tree"
done
[ "$looked" -ge 2 ] || fail "only $looked programs with a run path were found"
