"""Every attack by a tarball that is none, or holds what no submission holds."""

from attacks.archive_files import FILES
from attacks.archive_manifest import MANIFESTS
from attacks.archive_members import MEMBERS

ATTACKS = (*FILES, *MEMBERS, *MANIFESTS)
