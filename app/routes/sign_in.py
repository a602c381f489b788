"""Sign-in with an OpenID Connect provider, which the table [sign_in] of DOCS_KEYS names: readers and operators need no key then.

A signed cookie keeps who has signed in; the service stores nothing of them. What they may do is looked up at each request in the table
as it is now, and the provider is asked for their roles again and again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import APIRouter
from starlette.datastructures import URL
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.core.errors import ProviderError, SettingsError
from app.core.log_message import LogMessage
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.http.bodies import preferred_language
from app.http.door import info_of, log_error
from app.http.errors import api_error
from app.http.keys import PERSON, Access, Role, SignInTable

if TYPE_CHECKING:
    from app.routes.openid import Provider
    from app.routes.service import Service

log = logging.getLogger("app.http")
now = time.time

COOKIE = "docs_assistant_person"
STATE_COOKIE, STATE_SECONDS = "docs_assistant_sign_in", 600
NAMES = ("name", "preferred_username", "email")
LONGEST_NAME = 100  # characters
FAILED, REFUSED = "failed", "refused"
_PERSON = "docs_assistant.person"
HTML = {"content-security-policy": "default-src 'none'; frame-ancestors 'none'", "cache-control": "no-store"}


def router(service: Service) -> APIRouter:
    """The routes by which people sign in; none unless the file of keys has [sign_in]. Raises `SettingsError`."""
    if not service.keys.sign_in:
        return APIRouter()
    service.keys.people = people = SignIn(lambda: service.keys.sign_in, service.settings)
    return people.router()


class SignIn:
    """The routes below /sign-in, and who has signed in. `table` is [sign_in] as it is now; without it, nobody has.

    Raises `SettingsError` without the package that it needs.
    """

    def __init__(self, table: Callable[[], SignInTable | None], settings: Settings) -> None:
        self._now, self._settings = table, settings
        self._made: tuple[SignInTable, Provider, Any] | None = None
        self._current()

    @property
    def operators(self) -> bool:
        """True if some of those who sign in are operators."""
        table = self._now()
        return bool(table and table.admins)

    def router(self) -> APIRouter:
        """The routes, which share a cookie for the way to the provider and back."""
        routes = [
            Route("/", self.begin),
            Route("/callback", self.end, name="callback"),
            Route("/out", self.leave, methods=["POST"]),  # the door lets no page of others send it
        ]
        state = Middleware(_State, secret=_secret(self._current()[0]))
        return APIRouter(routes=[Mount("/sign-in", routes=routes, middleware=[state], name="sign_in")])

    async def begin(self, request: Request) -> Response:
        """Lead to the provider; `next` is the path of this service to come back to. With `renew`, nobody is asked for anything."""
        _, provider, _ = self._current()
        silent = "renew" in request.query_params
        after = _own_path(request.query_params.get("next", ""))
        request.session.clear()  # of an attempt that was given up
        request.session.update({"next": after, "silent": silent})
        try:
            led: Response = await provider.redirect(request, str(request.url_for("sign_in:callback")), silent=silent)
        except ProviderError as error:
            return self._failed(request, error)
        return led

    async def end(self, request: Request) -> Response:
        """Take what the provider says of the person, and go back to where they came from."""
        from authlib.integrations.starlette_client import OAuthError

        table, provider, signer = self._current()
        after, silent = request.session.get("next") or "/", request.session.get("silent")
        try:
            claims = await provider.claims(request)
            roles = _roles(claims, table)
        except OAuthError as error:  # they said no at the provider, or come back with an old address
            log.warning(LogMessage("sign-in failed", error=error.error, message=error.description or ""))
            return self._outdated(request, _back(request, after, "" if silent else FAILED))
        except ProviderError as error:
            return self._failed(request, error)
        if _role(roles, table) is None:
            log.warning(LogMessage("sign-in refused: the person has none of the roles of [sign_in]"))
            return _forget(_back(request, after, REFUSED))
        person = self._renewed(request, claims, roles)
        response = _back(request, after)
        response.set_cookie(
            COOKIE, signer.dumps(person), int(person["since"] + table.hours * 3600 - now()),
            secure=request.url.scheme == "https", httponly=True, samesite="lax",
        )  # fmt: skip
        return response

    async def leave(self, request: Request) -> Response:
        """Forget who has signed in; their session with the provider goes on."""
        return _forget(_back(request, "/"))

    def access(self, request: Request) -> Access | None:
        """Returns what the person who sends this request may do; None if nobody has signed in, or long ago."""
        person, table = self._person(request), self._now()
        role = _role(person["roles"], table) if person and table else None
        return Access(role, f"person-{person['id'][:8]}", owner=f"{PERSON}{person['id']}") if role else None

    def name(self, request: Request) -> str:
        """The person's name for their own eyes; empty if nobody has signed in."""
        return str(self._person(request)["name"]) if self.access(request) else ""

    def renewal(self, request: Request) -> str:
        """Returns the address that asks the provider for the roles again and leads back to this page; empty if it needn't be asked."""
        if not self._kept(request) or self._person(request) or "sign_in" in request.query_params:
            return ""
        root = request.scope.get("root_path", "")
        here = request.url.path.removeprefix(root) + (f"?{request.url.query}" if request.url.query else "")
        return f"{root}/sign-in/?renew=1&next={quote(here, safe='')}"

    def _current(self) -> tuple[SignInTable, Provider, Any]:
        """The table as it is now with its provider, and what signs cookies. Raises `HTTPException` if it was removed."""
        if (table := self._now()) is None:
            raise HTTPException(404)
        if self._made is None or self._made[0] != table:
            try:
                from itsdangerous import URLSafeSerializer

                from app.routes.openid import Provider
            except ImportError as error:
                raise SettingsError(
                    "[sign_in] of DOCS_KEYS needs Authlib: pip install '.[sign-in]' in a checkout."
                ) from error
            self._made = table, Provider(table), URLSafeSerializer(_secret(table), salt=f"{COOKIE} {table.issuer}")
        return self._made

    def _kept(self, request: Request) -> Mapping[str, Any]:
        """What the cookie says of a person who signed in less than `hours` ago; empty without such a cookie."""
        from itsdangerous import BadData

        if (known := request.scope.get(_PERSON)) is None:
            known = {}
            if (value := request.cookies.get(COOKIE)) and self._now():
                table, _, signer = self._current()
                try:
                    said = signer.loads(value)
                except BadData:
                    said = None
                if isinstance(said, dict) and now() < said["since"] + table.hours * 3600:
                    known = said
            request.scope[_PERSON] = known
        kept: Mapping[str, Any] = known
        return kept

    def _person(self, request: Request) -> Mapping[str, Any]:
        """The same if the provider was asked less than `renew_minutes` ago."""
        kept, table = self._kept(request), self._now()
        return kept if kept and table and now() < kept["at"] + table.renew_minutes * 60 else {}

    def _renewed(self, request: Request, claims: Mapping[str, Any], roles: frozenset[str]) -> dict[str, Any]:
        """What the cookie keeps: of the roles only those that the table names, of the time also when they signed in themselves."""
        table, at = self._current()[0], int(now())
        id_ = sha256(f"{claims['iss']} {claims['sub']}".encode()).hexdigest()[:16]
        kept = self._kept(request)
        again = request.session.get("silent") and kept and kept["id"] == id_
        return {
            "id": id_,
            "name": next((str(claims[one]) for one in NAMES if claims.get(one)), claims["sub"])[:LONGEST_NAME],
            "roles": sorted(roles.intersection((*table.admins, *table.readers))),
            "since": kept["since"] if again else at,
            "at": at,
        }

    def _outdated(self, request: Request, response: Response) -> Response:
        """The response, which forgets who has to be renewed and can't be; any page could send others who have signed in here."""
        return response if self._person(request) else _forget(response)

    def _failed(self, request: Request, error: ProviderError) -> Response:
        """Status 502, as a page for a browser; who only had to be renewed goes on as somebody who hasn't signed in."""
        if request.session.get("silent"):
            log_error(info_of(request), error)
            return self._outdated(request, _back(request, request.session.get("next") or "/", FAILED))
        if "text/html" not in request.headers.get("accept", ""):
            raise error
        log_error(info_of(request), error)
        accepted = preferred_language(request.headers.get("accept-language", ""), self._settings.languages)
        code = accepted or self._settings.default_language
        said = load_prompts((code,), self._settings.prompts).language(code).texts.sign_in
        home = f"{request.scope.get('root_path', '').removesuffix('/sign-in')}/"
        text = (
            f'<!doctype html><html lang="{code}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f'<title>502</title><main><h1>502</h1><p>{escape(said)}</p><p><a href="{escape(home)}">{escape(str(request.base_url.hostname))}</a></p></main></html>'
        )
        return Response(text, api_error(error, "").status, HTML, "text/html")


class _State:
    """Middleware: the session of an attempt to sign in, in a cookie that is Secure where that of the person is."""

    def __init__(self, app: ASGIApp, secret: str) -> None:
        from starlette.middleware.sessions import SessionMiddleware

        self._by_scheme = {
            secure: SessionMiddleware(
                app, secret, session_cookie=STATE_COOKIE, max_age=STATE_SECONDS, https_only=secure
            )
            for secure in (False, True)
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request."""
        await self._by_scheme[scope.get("scheme") == "https"](scope, receive, send)


def _secret(table: SignInTable) -> str:
    return sha256(f"sign-in {table.client_secret.get_secret_value()}".encode()).hexdigest()


def _roles(claims: Mapping[str, Any], table: SignInTable) -> frozenset[str]:
    """The roles by the claim, a text or a list of texts; none without it. Raises `ProviderError` for anything else."""
    found: Any = claims
    for part in table.roles_claim.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    roles = [found] if isinstance(found, str) else found or []
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise ProviderError(f"The claim {table.roles_claim} is neither a text nor a list of texts.")
    return frozenset(roles)


def _role(roles: frozenset[str] | list[str], table: SignInTable) -> Role | None:
    """The role by the table; None for somebody who has none of those that may use the service."""
    if not set(table.admins).isdisjoint(roles):
        return "admin"
    return "reader" if not table.readers or not set(table.readers).isdisjoint(roles) else None


def _own_path(path: str) -> str:
    """The path with its query if it is one of this service, else that of the page."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


def _back(request: Request, path: str, problem: str = "") -> RedirectResponse:
    root = request.scope.get("root_path", "").removesuffix("/sign-in")
    address = URL(path)
    return RedirectResponse(f"{root}{address.include_query_params(sign_in=problem) if problem else address}", 303)


def _forget(response: Response) -> Response:
    response.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return response
