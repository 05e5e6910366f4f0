"""Dialect ``cdim``: NEC's configuration manager and layout-apply (contract chassis.md 6)."""

from __future__ import annotations

from collections.abc import Callable

from mews.harness.conformance.bench import ClauseContext
from mews.harness.conformance.clause import SHOULD, Clause, moves_resting_on, noticed, resting_on
from mews.harness.conformance.dialects import cdim_layouts, cdim_read
from mews.harness.conformance.dialects.cdim_table import RESOURCES, CdimTableClient
from mews.harness.conformance.dialects.registry import DialectClauses
from mews.harness.conformance.moves import moving, reading, watched

READ = "GET /resources"
CONNECT = "POST /layout-apply, connect"
DISCONNECT = "POST /layout-apply, disconnect"
UNKNOWN_PORT = "9999"
Check = Callable[[ClauseContext], None]


def _reads(word: str, title: str, reference: str, check: Check, *needs: str) -> Clause:
    return Clause(f"6.{word}", title, f"chassis.md 6: {reference}", check, needs=tuple(f"6.{each}" for each in needs))


def _moves(word: str, title: str, reference: str, check: Check, *needs: str) -> Clause:
    wanted = tuple(f"6.{each}" for each in needs)
    return Clause(f"6.{word}", title, f"chassis.md 6: {reference}", check, changes=True, needs=wanted)


LISTING = _reads("listing", "all resources are listed, each with its device", READ, cdim_read.listing)
STRINGS = _reads("strings", "members of a resource have their types", READ, cdim_read.strings)
NODE_LINKS = _reads(
    "node-links", "nodeIDs and the link of type CPU name the same node", "links", cdim_read.node_links, "strings"
)

HELD = (
    _moves("apply-reply", "each accepted layout has a new ID", "applyID", cdim_layouts.reply),
    _moves("layout", "a layout shows its procedures, times and status", "GET /layout-apply/{id}",
           cdim_layouts.shown_layout, "apply-reply"),
    _moves("result", "a procedure's result says what was done", "applyResult", cdim_layouts.result, "layout"),
    _moves("newest", "layouts are listed, the newest first", "GET /layout-apply", cdim_layouts.listed,
           "layouts", "layout"),
    _moves("dependencies", "a procedure waits for those that it names", "dependencies", cdim_layouts.dependencies),
    _moves("skipped", "what waits for a failed procedure is skipped", "SKIPPED", cdim_layouts.skipped),
    _moves("bodies", "a body in another form is 400", "POST /layout-apply, 400", cdim_layouts.bad_body),
    _moves("empty", "an empty list of procedures is completed", "POST /layout-apply", cdim_layouts.empty),
    _moves("ended", "a layout that has ended is not canceled, and can be deleted", "PUT, DELETE /layout-apply/{id}",
           cdim_layouts.ended, "empty"),
)  # fmt: skip
FREE = (
    _moves("operator-body", "the operator's body connects a device", "sourceDeviceID, destinationDeviceID",
           cdim_layouts.operator_body, "adapters"),
    _moves("exclusive", "a layout that meets another one is 409 E40010", "409 E40010", cdim_layouts.busy),
)  # fmt: skip

RESTING: tuple[Clause, ...] = (
    STRINGS,
    _reads("count", "count is how many are listed", "count", cdim_read.count),
    _reads("one-place", "a resource is listed once, and linked to one node at most", READ, cdim_read.one_place),
    _reads("order", "resources are in ascending order of their IDs", "order", cdim_read.order, "strings", "one-place"),
    _reads("brief", "without detail a device is ID, type and status", "detail", cdim_read.brief),
    _reads("any-case", "detail is true in any case", "detail", cdim_read.any_case),
    _reads("other-word", "detail that is no boolean is 400", "detail", cdim_read.other_word),
    _reads("status", "a device has state and health", "status", cdim_read.status),
    _reads("model", "a GPU names its model", "model", cdim_read.model),
    NODE_LINKS,
    _reads("operator-links", "an attached device has both links of the fabric, a free one none", "eeio",
           cdim_read.operator_links, "node-links"),
    _reads("resource", "one resource is what the list has of it", "GET /resources/{id}", cdim_read.single, "one-place"),
    _reads("unknown-resource", "a resource that there is not is 404", "404", cdim_read.unknown_resource),
    _reads("nodes", "nodes are in ascending order, with their resources in brief", "GET /nodes", cdim_read.nodes),
    _reads("nodes-in-full", "nodes are in full detail where that is asked for", "GET /nodes?detail=true",
           cdim_read.nodes_in_full),
    _reads("adapters", "each node has an adapter that leads to one in the chassis", "eesv, eeio", cdim_read.adapters,
           "nodes-in-full"),
    _reads("node", "one node is in full detail, without nodeIDs inside", "GET /nodes/{id}", cdim_read.node, "nodes"),
    _reads("same-table", "a node has the resources that are linked to it", "GET /nodes", cdim_read.same_table,
           "node-links", "one-place"),
    _reads("unknown-node", "a node that there is not is 404", "404", cdim_read.unknown_node),
    _reads("available", "what is enabled, good, detected and offered is available", "GET /resources/available",
           cdim_read.available, "one-place", "status", "strings"),
    _reads("by-type", "available resources are in order of type, then of ID", "GET /resources/available",
           cdim_read.by_type),
    _reads("unused", "unused resources are the available ones without links", "GET /resources/unused",
           cdim_read.unused, "one-place", "status", "strings"),
    _reads("groups", "the default group is listed first", "GET /resource-groups", cdim_read.groups),
    _reads("members", "a group has the resources that name it", "GET /resource-groups/{id}", cdim_read.members,
           "groups", "one-place"),
    _reads("unknown-group", "a group that there is not is 404, and an empty filter", "resourceGroupID",
           cdim_read.unknown_group),
    _reads("layouts", "layouts are listed as many as asked for", "GET /layout-apply", cdim_read.layouts),
    _reads("query", "a query that makes no sense is 400", "GET /layout-apply, 400", cdim_read.bad_query),
    _reads("unknown-layout", "a layout that there is not is 404 E40020", "404", cdim_read.unknown_layout),
    _reads("layout-id", "an ID in another form is 400", "400", cdim_read.layout_id),
    _reads("migration", "a node as it is needs no procedures", "POST /migration-procedures", cdim_read.migration,
           "nodes"),
    *reading(6, read=READ),
    *moving(6, attach=CONNECT, detach=DISCONNECT, unknown_port=UNKNOWN_PORT, free=FREE, held=HELD),
    Clause("6.error-form", "an error of the configuration manager is {code, message, details}", "chassis.md 6: Errors",
           noticed("error-form"), last=True),
    Clause("6.layout-error", "an error of layout-apply is {code E4…, message}", "chassis.md 6: Errors",
           noticed("layout-error"), last=True),
    Clause("6.sniffing", "a reply forbids to guess its type", "chassis.md 6: X-Content-Type-Options",
           noticed("sniffing"), last=True, grade=SHOULD),
    *watched(6, attach=CONNECT, detach=DISCONNECT, read=READ),
)  # fmt: skip

CLAUSES = (LISTING, *resting_on((LISTING.id,), moves_resting_on((STRINGS.id, NODE_LINKS.id), RESTING)))

DIALECT_CLAUSES = DialectClauses(
    CdimTableClient, CLAUSES, __file__, home=RESOURCES, words=("deviceID", "nodeIDs", "resourceGroupIDs")
)
