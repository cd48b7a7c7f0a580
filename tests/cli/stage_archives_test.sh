# muster-stage copy --unpack of archives that become more than they seem: bytes, entries, space; nothing of them stays.
# parts: data
. "$(dirname "$0")/lib.sh"

STAGE=$MUSTER_BIN/muster-stage
[ -x "$STAGE" ] || skip "muster-stage was not built (no MPI or no parallel HDF5)"

python3 - <<'END'
import io, lzma, tarfile, zipfile
zeros = bytes(1 << 20)

class Zeros(io.RawIOBase):
    def __init__(self, size): self.left = size
    def readable(self): return True
    def read(self, most=-1):
        size = min(self.left, len(zeros) if most < 0 else most)
        self.left -= size
        return zeros[:size]

def tar(name, mode, *files):
    with tarfile.open(name, mode) as out:
        for path, size in files:
            info = tarfile.TarInfo(path)
            info.size = size
            out.addfile(info, Zeros(size))

tar("small.tar.gz", "w:gz", ("a", 4096), ("b", 4096))
tar("plain.tar", "w:", ("first", 4096), ("second", 20 << 20))
tar("packed.tar.gz", "w:gz", ("first", 4096), ("second", 20 << 20))
with lzma.open("bomb.tar.xz", "w", preset=0) as out, tarfile.open(fileobj=out, mode="w|") as entries:
    info = tarfile.TarInfo("bomb")
    info.size = 80 << 20
    entries.addfile(info, Zeros(80 << 20))
tar("crowd.tar", "w:", *((f"file{i}", 0) for i in range(40)))
with tarfile.open("many.tar.gz", "w:gz") as out:
    for _ in range(12000):
        out.addfile(tarfile.TarInfo("a"))
with zipfile.ZipFile("zipped.zip", "w", zipfile.ZIP_DEFLATED) as out:
    out.writestr("first", bytes(4096))
    out.writestr("second", bytes(20 << 20))
# A zip file that tells 4096 bytes of 20 MiB, in both of its directories.
lying = bytearray(open("zipped.zip", "rb").read())
told = (20 << 20).to_bytes(4, "little")
at = lying.find(told)
while at >= 0:
    lying[at : at + 4] = (4096).to_bytes(4, "little")
    at = lying.find(told, at)
open("lying.zip", "wb").write(lying)
END

# refused ARCHIVE TEXT OPTIONS...: not unpacked, and nothing of it left.
refused() {
    local archive=$1 text=$2
    shift 2
    expect_exit 125 "$STAGE" copy --unpack "$@" "$archive" there
    expect_contains stderr "$text"
    expect_equal "$(ls there)" "$archive" "what is in the folder"
    expect_true [ ! -e there/.muster-stage/unpacking ]
    rm -rf there
}

"$STAGE" copy --unpack small.tar.gz there >"$OUT" 2>"$ERR"
if grep -q 'this build of muster has no libarchive' "$ERR"; then
    skip "muster-stage was built without libarchive"
fi
rm -rf there
refused bomb.tar.xz "bomb.tar.xz, at its entry bomb, becomes 80 MiB, more than the 64 MiB that are allowed; give --unpack-limit BYTES if you trust it"
refused packed.tar.gz "at its entry second, becomes 20 MiB, more than the 10 MiB" --unpack-limit 10MiB
refused plain.tar "plain.tar becomes 20 MiB, more than the 10 MiB" --unpack-limit 10MiB
refused zipped.zip "zipped.zip becomes 20 MiB, more than the 10 MiB" --unpack-limit 10MiB
refused many.tar.gz "many.tar.gz, at its entry a, has more entries than the 10000 that are believed of an archive of its size"
refused lying.zip "lying.zip cannot be read at second"
expect_exit 0 "$STAGE" copy --unpack --unpack-limit 100MiB bomb.tar.xz there
expect_equal "$(stat -c %s there/bomb/bomb)" $((80 << 20)) 'bytes of the trusted archive'
rm -rf there
expect_exit 2 "$STAGE" copy --unpack-limit 1MiB small.tar.gz there
expect_contains stderr "--unpack-limit without --unpack; give both"
expect_exit 2 "$STAGE" copy --unpack --unpack-limit much small.tar.gz there

# Links: each leads inside the folder whatever else is in the archive, before it or behind it. Modes are as the umask has them.
python3 - <<'END'
import io, stat, tarfile, zipfile

def tar(name, *entries):
    with tarfile.open(name, "w") as out:
        for kind, path, to in entries:
            info = tarfile.TarInfo(path)
            info.type, info.linkname, info.mode = kind, to, 0o777
            out.addfile(info, io.BytesIO(b""))

LINK, HARD, FILE, DIR = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.REGTYPE, tarfile.DIRTYPE
deep = "d/d/d/d/d/d/d/d"
up = "../" * 8
tar("moved.tar", (LINK, f"{deep}/s", f"{up}home/x"), (HARD, "log.txt", f"{deep}/s"))
chain = [(LINK, f"{deep}/s", up.rstrip("/")), (LINK, "passwd", f"{deep}/s/../etc/passwd")]
tar("chain.tar", *chain)
tar("niahc.tar", *reversed(chain))
tar("dots.tar", (LINK, "a", "b/./..//c"))
tar("over.tar", (LINK, "a", "../x"))
tar("folder.tar", (DIR, "f", ""), (HARD, "g", "f"))
tar("deep.tar", (FILE, "d/" * 3000 + "x", ""))
tar("good.tar", (FILE, "lib/so.1", ""), (LINK, "lib/so", "so.1"), (LINK, "bin/so", "../lib/so"), (LINK, "top", "lib"),
    (HARD, "hard", "lib/so.1"), (DIR, "open", ""))
with zipfile.ZipFile("chain.zip", "w") as out:
    for _, path, to in chain:
        info = zipfile.ZipInfo(path)
        info.create_system, info.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
        out.writestr(info, to)
END
refused moved.tar "moved.tar: the entry log.txt is a hard link to d/d/d/d/d/d/d/d/s, which is no file; it is not unpacked"
for archive in chain.tar niahc.tar chain.zip; do
    refused $archive "the link passwd leads to d/d/d/d/d/d/d/d/s/../etc/passwd, with .. behind a name that may be a link; it is not unpacked"
done
refused dots.tar "the link a leads to b/./..//c, with .. behind a name"
refused over.tar "the link a leads to ../x, out of the folder"
refused folder.tar "is a hard link to f, which is no file"
refused deep.tar "lies in more than 256 folders; unpack it by tar or unzip if you trust it"
expect_exit 0 sh -c 'umask 027; exec "$0" copy --unpack good.tar there' "$STAGE"
expect_equal "$(stat -c %a there/good/lib/so.1 there/good/open | tr '\n' ' ')" '750 750 ' 'modes of what was unpacked'
expect_true [ there/good/bin/so -ef there/good/hard ]
rm -rf there

# Space: known before the first byte where the archive says its size as a whole, else before the entry that does not fit.
if unshare -rm true 2>/dev/null; then
    for archive in packed.tar.gz zipped.zip; do
        expect_exit 125 unshare -rm sh -c 'mkdir -p full && mount -t tmpfs -o size=8m tmpfs full && { "$0" copy --unpack $1 full; code=$?; ls -A full full/.muster-stage; exit $code; }' "$STAGE" $archive
        expect_contains stderr "becomes 20 MiB, and" "are free; free space there, or give another folder"
        expect_not_contains stdout "unpacking"
    done
    expect_exit 125 unshare -rm sh -c 'mkdir -p few && mount -t tmpfs -o nr_inodes=30 tmpfs few && "$0" copy --unpack $1 few' "$STAGE" crowd.tar
    expect_contains stderr "crowd.tar has " " entries or more, and " " inodes are free; free some, or give another folder"
fi
