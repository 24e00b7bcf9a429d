"""What object stores and their clients complain about, in plain words, with the setting to change.

The text of an error is all that obstore, PyArrow, boto3 and Spark have in common: each passes on the code that the
server answered with. Only what a retry cannot mend is in here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dalsegno.errors import StorageRefused


@dataclass(frozen=True)
class StorageProblem:
    """Why a store refuses, and what to do about it; ``{place}`` is the catalog's table in the settings file."""

    #: The codes and phrases by which it is known.
    signs: str
    #: "the bucket does not exist"
    problem: str
    advice: str


_BUNDLE = (
    'The local Spark fetches it if the settings name the store: write "s3.region" (S3), "gcs.project-id" (Google) or '
    '"adls.account-name" (Azure) under {properties}. A Spark of your own needs the jar in spark.jars.packages, for '
    "instance org.apache.iceberg:iceberg-aws-bundle:1.12.0."
)
#: It may be about one file only.
DENIED = StorageProblem(
    r"AccessDenied|ACCESS_DENIED|AuthorizationPermissionMismatch|does not have storage\.objects"
    r"|Status Code: 403",
    "the credentials do not have the right to do it",
    "Grant the rights that docs/how-to/s3-and-glue.md lists, or use other credentials.",
)
_PROBLEMS = (
    StorageProblem(
        r"SignatureDoesNotMatch|SIGNATURE_DOES_NOT_MATCH|signature we calculated does not match",
        "the secret key is wrong",
        'Correct "s3.secret-access-key" under {properties}, or AWS_SECRET_ACCESS_KEY in the environment.',
    ),
    StorageProblem(
        r"InvalidAccessKeyId|INVALID_ACCESS_KEY_ID|XAdminUserNotFound|UnrecognizedClientException|InvalidClientTokenId"
        r"|No user exists with the provided access key",
        "the access key is unknown",
        'Correct "s3.access-key-id" under {properties}, or AWS_ACCESS_KEY_ID in the environment.',
    ),
    StorageProblem(
        r"ExpiredToken|EXPIRED_TOKEN|TokenRefreshRequired|InvalidToken\b",
        "the credentials have expired",
        "Get new ones, for instance with: aws sso login. Then run the command again.",
    ),
    StorageProblem(
        r"Unable to load credentials|Unable to locate credentials|NoCredentialsError|NoCredentials\b"
        r"|PartialCredentials|MissingSecurityHeader|missing authentication token|credential provider was not enabled"
        # The address at which machines ask for the credentials that they were given.
        r"|169\.254\.|403 Forbidden\s*$",
        "there are no credentials",
        "Set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, in the environment of dalsegno; or "
        '"s3.access-key-id" and "s3.secret-access-key" under {properties}.',
    ),
    StorageProblem(
        r"NoSuchBucket|NO_SUCH_BUCKET|The specified bucket does not exist",
        "the bucket does not exist",
        'Correct warehouse = "s3://BUCKET/…" in {place}; if the bucket exists, check "s3.endpoint".',
    ),
    StorageProblem(
        r"AuthorizationHeaderMalformed|AUTHORIZATION_HEADER_MALFORMED|PermanentRedirect|IllegalLocationConstraint"
        r"|must be addressed using the specified endpoint|the region \S+ is wrong|moved permanently",
        "the bucket is in another region",
        'Set "s3.region" under {properties} to the region of the bucket.',
    ),
    StorageProblem(
        r"Unable to load region|NoRegionError|must specify a region",
        "the region is not known",
        'Set "s3.region" under {properties}, or AWS_REGION in the environment.',
    ),
    StorageProblem(
        r"Cannot find constructor for interface .*FileIO|ClassNotFoundException: software\.amazon\.awssdk"
        r"|NoClassDefFoundError: (?:software/amazon/awssdk|com/google/cloud|com/azure)"
        r"|Cannot initialize FileIO.*missing no-arg constructor",
        "Spark lacks the jar with the libraries of the object store",
        _BUNDLE,
    ),
    StorageProblem(
        r"Failed to get file system for path: (?:s3|gs|abfs)|No FileSystem for scheme .?(?:s3|gs|abfs)",
        "Spark's catalog does not know how to read the object store",
        "A catalog that the cluster itself defines needs io-impl = org.apache.iceberg.aws.s3.S3FileIO, or the class of "
        "its store.",
    ),
    DENIED,
)


def storage_problem(text: str) -> StorageProblem | None:
    """What the text of an error says about the store; None if it does not, or if a retry may help."""
    return next((each for each in _PROBLEMS if re.search(each.signs, text)), None)


def advice_for(problem: StorageProblem, catalog: str | None) -> str:
    """The line to change; without the name of a catalog, of whichever it concerns."""
    name = catalog or "NAME"
    place, properties = f"[catalogs.{name}]", f"[catalogs.{name}.properties]"
    return problem.advice.replace("{place}", place).replace("{properties}", properties)


def refused(error: BaseException, catalog: str, doing: str) -> StorageRefused | None:
    """The error to raise instead, if the store refuses for a reason that no retry mends."""
    problem = storage_problem(str(error))
    if problem is None:
        return None
    return StorageRefused(
        f"Catalog {catalog!r} could not {doing}: {problem.problem}. The store says: {first_line(error).rstrip('.')}.",
        hint=advice_for(problem, catalog),
    )


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
