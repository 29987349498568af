"""Where a durable learner must not lie: on file systems that several machines share.

SQLite's write-ahead log needs locks that work and memory that all processes share; a file system of
the network has neither, and a file there is damaged sooner or later.
"""

from __future__ import annotations

import os
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_SHARED = {
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "drvfs", "gfs2", "glusterfs", "gpfs",
    "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "osxfs", "panfs", "prl_fs", "pvfs2",
    "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs", "wekafs",
    "fuse.blobfuse", "fuse.blobfuse2", "fuse.ceph", "fuse.davfs2", "fuse.gcsfuse", "fuse.glusterfs",
    "fuse.goofys", "fuse.grpcfuse", "fuse.gvfsd-fuse", "fuse.juicefs", "fuse.mfs", "fuse.moosefs",
    "fuse.mount-s3", "fuse.osxfs", "fuse.prl_fsd", "fuse.rclone", "fuse.s3fs", "fuse.seaweedfs",
    "fuse.sshfs", "fuse.vmhgfs-fuse",
}  # fmt: skip


def network_file_system(path: str | os.PathLike[str]) -> str | None:
    """Return the kind of network file system that ``path`` is on, as far as the system tells.

    Linux does; elsewhere only a path like ``\\\\server\\share`` is recognized. A file that is
    mounted alone is reported too: the files beside it are not those that others see.

    Examples
    --------
    >>> from unbounded.durable.network_fs import network_file_system
    >>> network_file_system("/proc")
    """
    if os.name == "nt":
        return "a network share" if os.path.realpath(path).startswith("\\\\") else None
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    place = Path(os.path.realpath(path))
    best, found = -1, ""
    for line in lines:  # 36 35 98:0 /root /where options ... - kind source options
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        where = Path(_unescaped(fields[4]))
        if place.is_relative_to(where) and len(where.parts) >= best:  # the last one mounted counts
            best, found = len(where.parts), after.split()[0]
    if best == len(place.parts) and not place.is_dir():
        return "a mount of its own"
    return found if found in _SHARED else None


def _unescaped(field: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, character)
    return field
