"""What ``spark-submit`` says when a cluster refuses an application, in one sentence, with what to change."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """Submitting it again, as it is, cannot help."""

    message: str
    hint: str


_QUEUE = "Set spark.yarn.queue in the step's conf or under [spark.conf] to a queue that you may use."
_LOGIN = (
    "Run kinit as the user that runs dalsegno, or set spark.kerberos.principal and spark.kerberos.keytab under "
    "[spark.conf]."
)
_REFUSALS = [
    (r"submitted by user (\S+) to unknown queue: ?(.+)", "YARN has no queue '{1}' for user '{0}'.", _QUEUE),
    (r"[Qq]ueue (\S+) is STOPPED", "YARN's queue '{0}' is stopped, and accepts no applications.", _QUEUE),
    (
        r"User (\S+) does not have permission to submit \S+ to queue (\S+)",
        "User '{0}' may not submit to YARN's queue '{1}'.",
        _QUEUE,
    ),
    (
        r"Required (executor|AM) memory ([^\n]*?) is above the max threshold \(([^)]*)\)",
        "The {0} needs more memory, {1}, than a container of this cluster may have: {2}.",
        "Lower spark.executor.memory, spark.driver.memory or their memoryOverhead in the step's conf.",
    ),
    (
        r"(Keytab file: \S+ does not exist|GSS initiate failed|Client cannot authenticate via:\[[^\]]*\]|"
        r"Can't get Master Kerberos principal)",
        "The cluster did not accept the login: {0}.",
        _LOGIN,
    ),
    (
        r"(Must specify the (?:driver|executor) container image)",
        "Spark on Kubernetes needs an image: {0}.",
        "Set spark.kubernetes.container.image in the step's conf or under [spark.conf].",
    ),
    (
        r"(Please specify spark\.kubernetes\.file\.upload\.path property)",
        "Spark on Kubernetes has to put the driver's file where its pod can read it. {0}.",
        "Set spark.kubernetes.file.upload.path in the step's conf or under [spark.conf], such as to s3a://bucket/upload.",
    ),
]


def refusal(log: str) -> Refusal | None:
    """Why the cluster did not take the application, if its words are known."""
    for pattern, message, hint in _REFUSALS:
        if match := re.search(pattern, log):
            return Refusal(message.format(*(group.rstrip(".") for group in match.groups())), hint)
    return None
