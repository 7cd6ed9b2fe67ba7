import { SERVICE } from "../../src/cli/systemd_unit.ts";
import { seccompFilter } from "./seccomp_filter.ts";
import { tempFolder } from "./temp_folder.ts";

/** A user without any rights. */
const NOBODY = "65534";

export interface Sandbox extends Disposable {
  /** The only writable folder; of the sandboxed user. */
  readonly storage: string;
  /** A program that runs the words behind it in the sandbox. */
  readonly through: readonly string[];
}

/**
 * The restrictions of larder's unit without systemd. The system is read-only. There are no
 * devices, no other processes in /proc and no capabilities. A user namespace and the filter of
 * system calls are in force.
 */
export function sandbox(): Sandbox {
  const folder = tempFolder();
  const storage = `${folder.path}/storage`;
  Deno.mkdirSync(storage);
  Deno.chmodSync(folder.path, 0o755);
  Deno.chownSync(storage, Number(NOBODY), Number(NOBODY));
  const filterPath = `${folder.path}/filter`;
  const filter = seccompFilter({
    filter: [SERVICE["SystemCallFilter"] ?? []].flat(),
    families: String(SERVICE["RestrictAddressFamilies"]),
  });
  Deno.writeFileSync(filterPath, filter);
  return {
    storage,
    through: ["unshare", "--mount", "--ipc", "sh", "-euc", SCRIPT, "sh", storage, filterPath],
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

// prctl is system call 157. 38 is PR_SET_NO_NEW_PRIVS, 22 is PR_SET_SECCOMP, 2 its filter mode.
const FILTERED = `my $path = shift; open(my $file, "<", $path) or die; local $/; my $f = <$file>;
my $program = pack("S x6 P", length($f) / 8, $f);
syscall(157, 38, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
syscall(157, 22, 2, $program, 0, 0) == 0 or die "seccomp: $!";
exec @ARGV or die "exec: $!";`;

const SCRIPT = `
storage=$1 filter=$2
shift 2
mount --bind "$storage" "$storage"
mount -t proc -o subset=pid,hidepid=invisible proc /proc
mount -t tmpfs -o mode=755 dev /mnt
for name in null zero full random urandom; do
  touch /mnt/$name
  mount --bind /dev/$name /mnt/$name
done
mount --move /mnt /dev
for hidden in /home /root /run; do [ ! -d $hidden ] || mount -t tmpfs -o mode=755 none $hidden; done
mount -o remount,bind,ro /
exec setpriv --reuid=${NOBODY} --regid=${NOBODY} --clear-groups --inh-caps=-all \\
  --bounding-set=-all unshare --user --map-current-user perl -e '${FILTERED}' "$filter" "$@"`;
