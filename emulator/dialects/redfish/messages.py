"""What the service says: names of the standard message registries with wordings of ours, and errors made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from msgspec import Struct

BASE = "Base.1.19"

BASE_MESSAGES: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "Success": ("OK", "Done.", "Nothing needs to be done."),
        "AccessDenied": ("Critical", "Access to {0} is denied.", "Ask with an account that may do this."),
        "AccountForSessionNoLongerExists": ("Warning", "The session's account is gone.", "Log in again."),
        "ActionNotSupported": ("Critical", "There is no action {0}.", "Ask for an action that the resource offers."),
        "ActionParameterMissing": ("Critical", "Action {0} needs the parameter {1}.", "Give the parameter."),
        "ActionParameterUnknown": ("Warning", "Action {0} has no parameter {1}.", "Leave the parameter out."),
        "ActionParameterValueConflict": (
            "Warning", "Parameter {0} = {1} does not go with {2}.", "Give values that go together.",
        ),
        "ActionParameterValueNotInList": (
            "Warning", "The value {0} of parameter {1} of action {2} is none of those allowed.", "Give another.",
        ),
        "ActionParameterValueTypeError": (
            "Warning", "The value {0} of parameter {1} of action {2} is of the wrong type.", "Give another type.",
        ),
        "CreateFailedMissingReqProperties": ("Critical", "Creating needs the property {0}.", "Give the property."),
        "Created": ("OK", "The resource was created.", "Nothing needs to be done."),
        "GeneralError": ("Critical", "{0}", "See the message."),
        "HeaderInvalid": ("Critical", "Header {0} is not valid.", "Correct the header."),
        "InsufficientPrivilege": ("Critical", "The account's privileges do not suffice.", "Use another account."),
        "InternalError": ("Critical", "The request failed inside the service.", "Look, try again."),
        "InvalidURI": ("Critical", "{0} is not a URI of this service.", "Use a URI that the service shows."),
        "MalformedJSON": ("Critical", "The body is not the JSON object that was expected.", "Correct the body."),
        "MissingOrMalformedPart": ("Critical", "The body is missing or too large.", "Correct the body."),
        "NoOperation": ("Warning", "The body asks for nothing.", "Name a property to change."),
        "NoValidSession": ("Critical", "No valid session or account is given.", "Log in first."),
        "OperationFailed": ("Warning", "An operation inside the service failed: {0}.", "Look, try again."),
        "OperationNotAllowed": ("Critical", "The method is not allowed on this resource.", "See the Allow header."),
        "PasswordChangeRequired": ("Critical", "The password must be changed at {0} first.", "PATCH the password."),
        "PreconditionFailed": ("Critical", "The ETag given is not that of the resource.", "Read it again."),
        "PreconditionRequired": ("Critical", "The ETag given as a parameter is not the current one.", "Read again."),
        "PropertyDuplicate": ("Warning", "The property {0} is given twice.", "Give it once."),
        "PropertyMissing": ("Warning", "The property {0} is missing.", "Give the property."),
        "PropertyNotWritable": ("Warning", "The property {0} cannot be written.", "Leave it out."),
        "PropertyUnknown": ("Warning", "There is no property {0}.", "Leave it out."),
        "PropertyValueConflict": ("Warning", "Property {0} does not go with {1}.", "Give values that go together."),
        "PropertyValueFormatError": ("Warning", "The value {0} of {1} has the wrong form.", "Correct the form."),
        "PropertyValueNotInList": ("Warning", "The value {0} of {1} is none of those allowed.", "Give an allowed one."),
        "PropertyValueOutOfRange": ("Warning", "The value {0} of {1} is out of range.", "Give one within the range."),
        "PropertyValueTypeError": ("Warning", "The value {0} of {1} is of the wrong type.", "Give another type."),
        "QueryNotSupported": ("Warning", "The query parameter {0} is not supported.", "Leave it out."),
        "QueryNotSupportedOnResource": ("Warning", "The query does not fit this resource.", "Leave it out."),
        "QueryParameterOutOfRange": ("Warning", "The value {0} of query {1} is out of {2}.", "Give one in the range."),
        "QueryParameterValueError": ("Warning", "The value {0} of query {1} cannot be used.", "Correct the value."),
        "QueryParameterValueFormatError": ("Warning", "The value {0} of query {1} cannot be read.", "Correct it."),
        "ResourceAlreadyExists": ("Critical", "A {0} with {1} = {2} is there already.", "Choose another value."),
        "ResourceCannotBeDeleted": ("Critical", "The resource cannot be deleted.", "Leave it."),
        "ResourceInUse": ("Warning", "The resource is in use.", "Release it first."),
        "ResourceMissingAtURI": ("Critical", "There is nothing at {0}.", "Use a URI that the service shows."),
        "ResourceNotFound": ("Critical", "There is no {0} named {1}.", "Use a name that the service shows."),
        "ServiceTemporarilyUnavailable": ("Critical", "Try again in {0} s.", "Wait, then try again."),
        "SessionLimitExceeded": ("Critical", "All sessions are taken.", "End a session first."),
        "UnauthorizedLoginAttempt": ("Critical", "The login was refused.", "Check name and password."),
        "UnsupportedMediaType": ("Critical", "The media type is not supported.", "Send JSON."),
    }
)  # fmt: skip
"""Name in the Base registry -> severity, wording, resolution."""


class RedfishMessage(Struct, frozen=True):
    """One message; ``name`` is a key of ``BASE_MESSAGES``, ``about`` the JSON pointers of the properties concerned."""

    name: str
    args: tuple[str, ...] = ()
    about: tuple[str, ...] = ()

    def render(self) -> dict[str, Any]:
        """Return the message on the wire."""
        severity, text, resolution = BASE_MESSAGES[self.name]
        shown: dict[str, Any] = {
            "@odata.type": "#Message.v1_3_0.Message",
            "MessageId": f"{BASE}.{self.name}",
            "Message": text.format(*self.args),
            "MessageArgs": list(self.args),
            "MessageSeverity": severity,
            "Resolution": resolution,
        }
        if self.about:
            shown["RelatedProperties"] = list(self.about)
        return shown


@dataclass(eq=False)
class RedfishError(Exception):
    """The request is refused; nothing was changed."""

    status: int
    messages: Sequence[RedfishMessage]
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Return the extended error."""
        return error(self.messages)


def fail(status: int, name: str, *args: object, about: Sequence[str] = ()) -> RedfishError:
    """Return a refusal with one message."""
    return RedfishError(status, (RedfishMessage(name, tuple(str(each) for each in args), tuple(about)),))


def error(messages: Sequence[RedfishMessage]) -> dict[str, Any]:
    """``error{code, message, @RedfishMessage.ExtendedInfo}``; several messages stand under one general code."""
    rendered = [message.render() for message in messages]
    if len(rendered) == 1:
        code, text = rendered[0]["MessageId"], rendered[0]["Message"]
    else:
        code, text = f"{BASE}.GeneralError", "The request failed; see @Message.ExtendedInfo."
    return {"error": {"code": code, "message": text, "@Message.ExtendedInfo": rendered}}
