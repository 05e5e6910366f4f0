"""What macros stand for: loops over lists and maps (cel-go's parser/macro.go and ext/comprehensions)."""

from __future__ import annotations

from mews.kube.cel.syntax import CallNode, ExpressionSyntaxError, Fold, Ident, ListNode, Literal, MapNode, Node, Select

_ACCU = "@result"


def expanded(name: str, target: Node | None, args: list[Node], at: int, *, bindings: bool = False) -> Node:
    """Return a call as it was written, or what it stands for; ``bindings``: with ``cel.bind`` (cel-go's
    ext/bindings.go)."""
    count = len(args)
    if target is None:
        if name == "has" and count == 1:
            if not isinstance(args[0], Select):
                raise ExpressionSyntaxError("invalid argument to has() macro", args[0].at)
            return Select(at, args[0].operand, args[0].field, test=True)
        return CallNode(at, name, None, args)
    if bindings and name == "bind" and count == 3 and isinstance(target, Ident) and target.name == "cel":
        var = _variable(args[0], "cel.bind() variable names must be simple identifiers")
        return _bound(var, args[1], args[2], at)
    if name in ("all", "exists", "exists_one", "existsOne") and count in (2, 3):
        return _quantifier(name, target, args, at)
    if name in ("map", "filter") and (count == 2 or (count == 3 and name == "map")):
        return _mapped(name, target, args, at)
    if name in ("transformList", "transformMap", "transformMapEntry") and count in (3, 4):
        return _transformed(name, target, args, at)
    if name in ("optMap", "optFlatMap") and count == 2:
        return _optional(name, target, args, at)
    return CallNode(at, name, target, args)


def _variable(node: Node, text: str) -> str:
    if not isinstance(node, Ident):
        raise ExpressionSyntaxError(text, node.at)
    if node.name in (_ACCU, "__result__"):
        raise ExpressionSyntaxError("iteration variable overwrites accumulator variable", node.at)
    return node.name


def _variables(args: list[Node], pairs: bool) -> tuple[str, str]:
    if not pairs:
        return _variable(args[0], "argument must be a simple name"), ""
    one, two = (_variable(arg, "argument must be a simple name") for arg in args[:2])
    if one == two:
        raise ExpressionSyntaxError(f"duplicate variable name: {two}", args[1].at)
    return one, two


def _quantifier(name: str, target: Node, args: list[Node], at: int) -> Node:
    var, var2 = _variables(args, len(args) == 3)
    test = args[-1]
    accu = Ident(at, _ACCU)
    if name == "all":
        init: Node = Literal(at, True)
        condition: Node = CallNode(at, "@not_strictly_false", None, [Ident(at, _ACCU)])
        step: Node = CallNode(at, "_&&_", None, [accu, test])
        result: Node = Ident(at, _ACCU)
    elif name == "exists":
        init = Literal(at, False)
        condition = CallNode(at, "@not_strictly_false", None, [CallNode(at, "!_", None, [Ident(at, _ACCU)])])
        step = CallNode(at, "_||_", None, [accu, test])
        result = Ident(at, _ACCU)
    else:
        name, init, condition = "exists_one", Literal(at, 0), Literal(at, True)
        more = CallNode(at, "_+_", None, [accu, Literal(at, 1)])
        step = CallNode(at, "_?_:_", None, [test, more, Ident(at, _ACCU)])
        result = CallNode(at, "_==_", None, [Ident(at, _ACCU), Literal(at, 1)])
    return Fold(at, name, [test], target, var, var2, _ACCU, init, condition, step, result)


def _mapped(name: str, target: Node, args: list[Node], at: int) -> Node:
    var = _variable(args[0], "argument is not an identifier")
    kept = args[1] if name == "filter" or len(args) == 3 else None
    made = args[0] if name == "filter" else args[-1]
    step: Node = CallNode(at, "_+_", None, [Ident(at, _ACCU), ListNode(at, [made])])
    if kept is not None:
        step = CallNode(at, "_?_:_", None, [kept, step, Ident(at, _ACCU)])
    parts = [kept if kept is not None else Literal(at, True), made]
    result = Ident(at, _ACCU)
    return Fold(at, "map", parts, target, var, "", _ACCU, ListNode(at, []), Literal(at, True), step, result)


def _transformed(name: str, target: Node, args: list[Node], at: int) -> Node:
    var, var2 = _variables(args, pairs=True)
    kept = args[2] if len(args) == 4 else None
    made, accu = args[-1], Ident(at, _ACCU)
    if name == "transformList":
        init: Node = ListNode(at, [])
        step: Node = CallNode(at, "_+_", None, [accu, ListNode(at, [made])])
    elif name == "transformMap":
        init = MapNode(at, [])
        step = CallNode(at, "cel.@mapInsert", None, [accu, Ident(at, var), made])
    else:
        init = MapNode(at, [])
        step = CallNode(at, "cel.@mapInsert", None, [accu, made])
    if kept is not None:
        step = CallNode(at, "_?_:_", None, [kept, step, Ident(at, _ACCU)])
    parts = [kept if kept is not None else Literal(at, True), made]
    return Fold(at, name, parts, target, var, var2, _ACCU, init, Literal(at, True), step, Ident(at, _ACCU))


def _optional(name: str, target: Node, args: list[Node], at: int) -> Node:
    var = _variable(args[0], f"{name}() variable name must be a simple identifier")
    value = CallNode(at, "value", target, [])
    bound = _bound(var, value, args[1], at)
    some = CallNode(at, "optional.of", None, [bound]) if name == "optMap" else bound
    none = CallNode(at, "optional.none", None, [])
    return CallNode(at, "_?_:_", None, [CallNode(at, "hasValue", target, []), some, none])


def _bound(var: str, value: Node, result: Node, at: int) -> Node:
    """Return the result with a name for the value: a loop that never runs."""
    nothing, stays = ListNode(at, []), Ident(at, var)
    return Fold(at, "bind", [result], nothing, "#unused", "", var, value, Literal(at, False), stays, result)
