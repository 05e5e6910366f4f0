"""Differences that stay, and why. One that no longer differs has to leave this table."""

_DESCRIBED = "the schemas carry no prose"
_BUILD = "the build tells who built it"

KNOWN: dict[str, str] = {
    "discovery: openapi index": "documents without schemas (of groups, discovery, openid) are not served",
    "discovery: version": _BUILD,
    "discovery: protobuf or json": "answers are JSON wherever a client takes JSON at all",
    "discovery: anonymous at the version": _BUILD,
    "crds: job of another version": "upstream also warns of every field, as the version it looks up has no schema",
    "crds: openapi": "paths and schemas are told as far as kubectl reads them",
    "kubectl: get lease -A": "there is no lease of an API server among several",
    "kubectl: explain pod": _DESCRIBED,
    "kubectl: explain pod.spec.containers": _DESCRIBED,
    "kubectl: explain deployment.spec.strategy --recursive": _DESCRIBED,
}
