# The descriptors of ranks: those that the caller of muster passed on, and none of muster's own.
. "$(dirname "$0")/lib.sh"

# Rank 2 is started while the pipes of two ranks are open.
echo passed on >given
cat >look.sh <<'SH'
cat /proc/self/fd/7 >"read.$1"
ls /proc/self/fd >"open.$1"
SH
sh look.sh alone 7<given
expect_exit 0 "$MUSTER" run -q -n 3 -- sh -c 'exec sh look.sh $MUSTER_RANK' 7<given
for rank in 0 1 2; do
  expect_equal "$(cat read.$rank)" 'passed on' "what rank $rank read from the caller's descriptor 7"
  expect_equal "$(cat open.$rank)" "$(cat open.alone)" "the descriptors of rank $rank"
done

# As a shell's <(command), at a high number.
expect_exit 0 "$MUSTER" run -q -n 2 -- sh -c 'cat /proc/self/fd/200' 200<given
expect_equal "$(grep -c 'passed on' "$OUT")" 2 'what was read from descriptor 200'

# A filter of system calls that does not know close_range, as in an older container: ranks start none the less.
cat >no_close_range.py <<'PY'
import ctypes, os, platform, struct, sys
if platform.machine() != "x86_64":
    sys.exit(77)
load, jump_equal, give = 0x20, 0x15, 0x06
close_range, refuse, allow = 436, 0x00050000 | 1, 0x7FFF0000
program = [(load, 0, 0, 0), (jump_equal, 0, 1, close_range), (give, 0, 0, refuse), (give, 0, 0, allow)]
rows = b"".join(struct.pack("HBBI", *row) for row in program)
buffer = ctypes.create_string_buffer(rows)
class Filter(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("rows", ctypes.c_void_p)]
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, ctypes.byref(Filter(len(program), ctypes.addressof(buffer))), 0, 0) != 0:
    sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
PY
python3 no_close_range.py /bin/true && expect_exit 0 python3 no_close_range.py "$MUSTER" run -q -n 3 -- echo started &&
  expect_equal "$(grep -c started "$OUT")" 3 'ranks that started without close_range'

# One that cannot be started: no rank stays, and the fault is told once.
printf '#!/no/such/interpreter\n' >broken
chmod +x broken
expect_exit 127 "$MUSTER" run -q -n 5 -- ./broken
expect_equal "$(grep -c 'no/such/interpreter' "$ERR")" 1 'how often the fault is told'
