"""Differences that stay, and why. One that no longer differs has to leave this table."""

_DESCRIBED = "the schemas have no descriptions"
_BUILD = "the build information differs"

KNOWN: dict[str, str] = {
    "discovery: openapi index": "documents of groups, discovery and openid, which have no schemas, are missing",
    "discovery: version": _BUILD,
    "discovery: protobuf or json": "the answer is JSON if the client accepts JSON",
    "discovery: anonymous at the version": _BUILD,
    "crds: job of another version": "upstream also warns of every field, because that version has no schema",
    "crds: openapi": "only paths and schemas that kubectl reads are served",
    "kubectl: get lease -A": "the API server has no lease, because only one server runs",
    "kubectl: explain pod": _DESCRIBED,
    "kubectl: explain pod.spec.containers": _DESCRIBED,
    "kubectl: explain deployment.spec.strategy --recursive": _DESCRIBED,
}
