"""Network file systems are recognised by what the system says of its mounts."""

import pytest

from unbounded import SCB
from unbounded.durable import Durable, DurableError
from unbounded.durable import files as places

MOUNTS = """\
22 1 253:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /mnt/share rw,relatime shared:9 - nfs4 server:/export rw,vers=4.2
31 30 0:41 / /mnt/share/local rw - xfs /dev/vdb rw
32 22 0:42 / /mnt/a\\040b rw - fuse.sshfs me@host: rw
33 22 0:43 / /twice rw - cifs //server/share rw
34 22 0:44 / /twice rw - ext4 /dev/vdc rw
35 22 0:45 / /windows rw - 9p C: rw
36 22 0:46 / /a/virtual rw - virtiofs share rw
37 22 0:47 / /a/box rw - vboxsf share rw
38 22 0:48 / /a/desktop rw - fuse.grpcfuse grpcfuse rw
39 22 253:0 /srv/arms.db /single/arms.db rw - ext4 /dev/vda rw
broken line
"""


@pytest.fixture
def mounts(tmp_path, monkeypatch):
    file = tmp_path / "mountinfo"
    file.write_text(MOUNTS)
    monkeypatch.setattr(places, "_MOUNTS", file)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/data/arms.db", None),
        ("/mnt/share/arms.db", "nfs4"),
        ("/mnt/share/local/arms.db", None),
        ("/mnt/shared/arms.db", None),
        ("/mnt/a b/arms.db", "fuse.sshfs"),
        ("/twice/arms.db", None),  # mounted over the share
        ("/windows/deep/down/arms.db", "9p"),
        ("/a/virtual/machine/arms.db", "virtiofs"),
        ("/a/box/arms.db", "vboxsf"),
        ("/a/desktop/arms.db", "fuse.grpcfuse"),
        ("/single/arms.db", "a mount of its own"),
        ("/single/other.db", None),
    ],
)
def test_the_mount_that_a_path_is_on(mounts, path, kind):
    assert places.network_file_system(path) == kind


def test_a_link_is_followed(mounts, tmp_path):
    (tmp_path / "link").symlink_to("/mnt/share")
    assert places.network_file_system(tmp_path / "link" / "arms.db") == "nfs4"


def test_where_the_system_says_nothing_nothing_is_rejected(monkeypatch, tmp_path):
    monkeypatch.setattr(places, "_MOUNTS", tmp_path / "none")
    assert places.network_file_system("/mnt/share") is None


def test_a_durable_learner_does_not_go_there(tmp_path, monkeypatch):
    file = tmp_path / "mountinfo"
    file.write_text(MOUNTS + f"36 22 0:46 / {tmp_path} rw - smb3 //server/share rw\n")
    monkeypatch.setattr(places, "_MOUNTS", file)
    with pytest.raises(DurableError, match=r"is on smb3, .*: put it on a local disk"):
        Durable(tmp_path / "arms.db", SCB(n_arms=2))
    assert not (tmp_path / "arms.db").exists()
