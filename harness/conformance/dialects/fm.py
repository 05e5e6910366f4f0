"""Dialect ``fm``: fabric manager, cluster manager and token service (contract chassis.md 5)."""

from __future__ import annotations

from mews.harness.conformance.clause import SHOULD, Clause, moves_resting_on, noticed, resting_on
from mews.harness.conformance.dialects import fm_moves, fm_read
from mews.harness.conformance.dialects.fm_table import RESOURCES, FmTableClient
from mews.harness.conformance.dialects.registry import DialectClauses
from mews.harness.conformance.moves import bare_delete, moving, reading, watched

TOKEN = "POST /id_manager"
READ = "GET /machines/{m}"
ALL = "GET /resources"
ATTACH = "PATCH /machines/{m}/update"
DETACH = "DELETE /machines/{m}/update"
RESIZE = "actions/resize"
CLUSTER = "GET /v3"
UNKNOWN_PORT = "9999"


def _of(words: str) -> str:
    return f"chassis.md 5: {words}"


TOKEN_FORM = Clause(
    "5.token", "a login gives a JWT of three parts with an integer exp", _of(f"{TOKEN}, exp"), fm_read.token_form
)
LISTING = Clause(
    "5.listing",
    "all resources are listed, free ones, too",
    _of(ALL),
    fm_read.listing,
    assumed=True,
)
STRINGS = Clause(
    "5.strings", "every member of a resource has its type", _of("RES"), fm_read.resources, needs=("5.machine",)
)
MACHINES = Clause(
    "5.machines", "machines are listed with fabric_id and mach_uuid", _of("GET /machines"), fm_read.machines
)
SAME = Clause(
    "5.same-table",
    "a machine has the resources that all resources have in it",
    _of(READ),
    fm_read.one_table,
    needs=("5.machine", "5.strings", "5.one-place"),
)
COUNTED = Clause(
    "5.available", "availability counts the free devices of a model, at the top level", _of("available-reserved"),
    fm_read.available, needs=("5.model", "5.one-place"),
)  # fmt: skip
GROWN = Clause(
    "5.target",
    "a resize to as many devices as there are adds none",
    _of(f"{RESIZE}, target"),
    fm_moves.target,
    changes=True,
    needs=("5.cluster-machine", "5.cluster-count"),
)
REPLY = Clause(
    "5.attach-reply",
    "an attach is answered with the machine, the new device first",
    _of(ATTACH),
    fm_moves.attach_reply,
    changes=True,
)
MODEL_ALONE = Clause(
    "5.by-model",
    "an attach by model brings one free device of that model",
    _of(ATTACH),
    fm_moves.by_model,
    changes=True,
    needs=("5.attach-reply", "5.unknown-port", "5.model"),
)
BODIES = Clause(
    "5.bodies", "a body in another form is refused", _of(f"{ATTACH}, {DETACH}"), fm_moves.bad_body, changes=True,
    needs=("5.delete-body",),
)  # fmt: skip
NO_SPEC = Clause(
    "5.no-specification",
    "a resize without a specification is refused",
    _of(RESIZE),
    fm_moves.no_specification,
    changes=True,
    needs=("5.cluster-machine",),
)

RESTING: tuple[Clause, ...] = (
    Clause("5.machine", "one machine is answered in full, alone in a list", _of(READ), fm_read.machine),
    STRINGS,
    MACHINES,
    Clause(
        "5.operational",
        "res_op_status is never empty and begins with 0, 1 or 2",
        _of("res_op_status"),
        fm_read.operational,
        needs=("5.machine",),
    ),
    Clause(
        "5.model",
        "a resource names its model by a condition",
        _of("res_spec.condition"),
        fm_read.model,
        needs=("5.machine",),
    ),
    Clause("5.one-place", "a resource is listed once", f"chassis.md 1, 5: {ALL}", fm_read.one_place),
    SAME,
    COUNTED,
    Clause("5.unknown-machine", "a machine that there is not is 4xx", _of("Errors"), fm_read.unknown_machine),
    Clause("5.tenant", "another tenant is 4xx", _of("tenant_uuid"), fm_read.tenant),
    Clause(
        "5.cluster-machine",
        "the cluster manager shows a machine's specifications",
        _of(CLUSTER),
        fm_read.cluster_machine,
    ),
    Clause(
        "5.cluster-devices",
        "the cluster manager's devices are the fabric manager's, by the GPU's UUID",
        _of("device_id"),
        fm_read.cluster_devices,
        needs=("5.cluster-machine", "5.same-table", "5.model"),
    ),
    Clause(
        "5.cluster-count",
        "device_count counts the devices that are there",
        _of("device_count"),
        fm_read.cluster_count,
        needs=("5.cluster-machine",),
    ),
    Clause("5.groups", "node groups are listed with their machines", _of("nodegroups"), fm_read.groups),
    *reading(5, read=ALL),
    *moving(
        5,
        attach=ATTACH,
        detach=DETACH,
        unknown_port=UNKNOWN_PORT,
        free=(REPLY,),
        held=(bare_delete(5, detach=DETACH), BODIES, GROWN, NO_SPEC),
    ),
    MODEL_ALONE,
    Clause(
        "5.error-form",
        "an error is {status, detail: {code, message, data}}",
        _of("Errors"),
        noticed("error-form"),
        last=True,
    ),
    *watched(5, attach=ATTACH, detach=DETACH, read=ALL),
)

AUTHORISED: tuple[Clause, ...] = (
    Clause(
        "5.token-lasts", "a token lasts longer than the 30 s before its end", _of("exp, renewed"), fm_read.token_lasts
    ),
    Clause("5.token-raw", "a form that is not encoded is taken, too", _of("raw space"), fm_read.token_raw),
    Clause("5.token-refused", "a wrong password is refused", _of(TOKEN), fm_read.token_refused),
    Clause("5.token-needed", "without a token a request is 401", _of("401"), fm_read.token_needed),
    Clause("5.token-checked", "a forged token is 401", _of("401"), fm_read.token_checked, needs=("5.token-needed",)),
    Clause("5.token-type", "token_type is Bearer", _of("token_type"), noticed("token-type"), last=True),
    Clause(
        "5.challenge",
        "a 401 has a WWW-Authenticate that names Bearer",
        f"{_of('401')}; RFC 6750, 3",
        noticed("challenge"),
        assumed=True,
        last=True,
        grade=SHOULD,
    ),
    LISTING,
    *resting_on((LISTING.id,), moves_resting_on((MACHINES.id, STRINGS.id), RESTING)),
)

CLAUSES = (TOKEN_FORM, *resting_on((TOKEN_FORM.id,), AUTHORISED))

DIALECT_CLAUSES = DialectClauses(
    FmTableClient, CLAUSES, __file__, login=True, home=RESOURCES, words=("res_uuid", "mach_uuid"), codes=("E02",)
)
