"""Sign-in with an OpenID Connect provider, which the table [sign_in] of DOCS_KEYS names: readers and operators need no key then.

Authlib does the authorization code flow with PKCE and checks the ID token (OpenID Connect Core 1.0, section 3.1). A signed cookie
keeps who has signed in; the service stores nothing of them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from starlette.datastructures import URL
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route

from app.api.middleware.keys import PERSON, Access, SignInTable, read_sign_in
from app.core.errors import SettingsError
from app.core.log_message import LogMessage

if TYPE_CHECKING:
    from fastapi import FastAPI

    from app.api.service import Service

log = logging.getLogger("app.api")

COOKIE = "docs_assistant_person"
STATE_COOKIE, STATE_SECONDS = "docs_assistant_sign_in", 600
NAMES = ("name", "preferred_username", "email")
FAILED, REFUSED = "failed", "refused"
_PERSON = "docs_assistant.person"


def add_to(app: FastAPI, service: Service) -> None:
    """Let people sign in if the file of keys has [sign_in]. Raises `SettingsError`."""
    if table := read_sign_in(service.settings):
        service.keys.people = people = SignIn(table)
        app.router.routes.append(people.routes())


class SignIn:
    """The routes below /sign-in, and who has signed in. Raises `SettingsError` without the package that it needs."""

    def __init__(self, table: SignInTable) -> None:
        try:
            from authlib.integrations.starlette_client import OAuth
            from itsdangerous import URLSafeTimedSerializer
        except ImportError as error:
            raise SettingsError(
                "[sign_in] of DOCS_KEYS needs Authlib: pip install 'docs-assistant[sign-in]'."
            ) from error
        self._table, self.operators = table, bool(table.admins)
        self._secret = sha256(f"sign-in {table.client_secret.get_secret_value()}".encode()).hexdigest()
        self._signer = URLSafeTimedSerializer(self._secret, salt=table.issuer)
        self._provider = OAuth().register(
            "provider",
            client_id=table.client_id,
            client_secret=table.client_secret.get_secret_value(),
            server_metadata_url=f"{table.issuer.rstrip('/')}/.well-known/openid-configuration",
            client_kwargs={"scope": " ".join(table.scopes), "code_challenge_method": "S256"},
        )

    def routes(self) -> Mount:
        """The routes."""
        from starlette.middleware.sessions import SessionMiddleware

        session = Middleware(
            SessionMiddleware, secret_key=self._secret, session_cookie=STATE_COOKIE, max_age=STATE_SECONDS
        )
        routes = [Route("/", self.begin), Route("/callback", self.end, name="callback"), Route("/out", self.leave)]
        return Mount("/sign-in", routes=routes, middleware=[session], name="sign_in")

    async def begin(self, request: Request) -> Response:
        """Lead to the provider; `next` is the path of this service to come back to."""
        request.session.clear()  # of an attempt that was given up
        request.session["next"] = _own_path(request.query_params.get("next", ""))
        try:
            redirect: Response = await self._provider.authorize_redirect(request, request.url_for("sign_in:callback"))
        except Exception as error:  # the provider is another program: anything can come back
            raise _unavailable(error) from error
        return redirect

    async def end(self, request: Request) -> Response:
        """Take what the provider says of the person, and go back to where they came from."""
        from authlib.integrations.starlette_client import OAuthError

        after = request.session.get("next") or "/"
        try:
            token = await self._provider.authorize_access_token(request)
            claims = dict(token.get("userinfo") or {})
            if self._table.roles_claim.partition(".")[0] not in claims:
                claims |= await self._provider.userinfo(token=token)
        except OAuthError as error:  # they said no at the provider, or come back with an old address
            log.warning(LogMessage("sign-in failed", error=error.error, message=error.description or ""))
            return _back(request, after, FAILED)
        except Exception as error:
            raise _unavailable(error) from error
        if (role := self._role(claims)) is None:
            log.warning(LogMessage("sign-in refused: the person has none of the roles of [sign_in]"))
            return _back(request, after, REFUSED)
        name = next((str(claims[one]) for one in NAMES if claims.get(one)), str(claims["sub"]))
        person = {
            "id": sha256(f"{claims['iss']} {claims['sub']}".encode()).hexdigest()[:16],
            "role": role,
            "name": name,
        }
        response = _back(request, after)
        secure = request.url.scheme == "https"
        response.set_cookie(
            COOKIE, self._signer.dumps(person), self._table.hours * 3600, secure=secure, httponly=True, samesite="lax"
        )
        return response

    async def leave(self, request: Request) -> Response:
        """Forget who has signed in; their session with the provider goes on."""
        response = _back(request, "/")
        response.delete_cookie(COOKIE, httponly=True, samesite="lax")
        return response

    def access(self, request: Request) -> Access | None:
        """Returns what the person who sends this request may do; None if nobody has signed in, or long ago."""
        if not (person := self._person(request)):
            return None
        name = f"person-{person['id'][:8]}"
        return Access("admin" if person["role"] == "admin" else "reader", name, owner=f"{PERSON}{person['id']}")

    def name(self, request: Request) -> str:
        """The person's name for their own eyes; empty if nobody has signed in."""
        return self._person(request).get("name", "")

    def _person(self, request: Request) -> Mapping[str, str]:
        """The `id`, `role` and `name` of who has signed in; empty if nobody has."""
        from itsdangerous import BadData

        if (known := request.scope.get(_PERSON)) is None:
            try:
                known = self._signer.loads(request.cookies.get(COOKIE, ""), max_age=self._table.hours * 3600)
            except BadData:
                known = {}
            request.scope[_PERSON] = known
        person: Mapping[str, str] = known
        return person

    def _role(self, claims: Mapping[str, Any]) -> str | None:
        """The role by the claim; None for somebody who has none of those that may use the service."""
        found: Any = claims
        for part in self._table.roles_claim.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        roles = {found} if isinstance(found, str) else set(found) if isinstance(found, Sequence) else set()
        if roles.intersection(self._table.admins):
            return "admin"
        return "reader" if not self._table.readers or roles.intersection(self._table.readers) else None


def _own_path(path: str) -> str:
    """The path with its query if it is one of this service, else that of the page."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) else "/"


def _back(request: Request, path: str, problem: str = "") -> RedirectResponse:
    root = request.scope.get("root_path", "").removesuffix("/sign-in")
    address = URL(path)
    return RedirectResponse(f"{root}{address.include_query_params(sign_in=problem) if problem else address}", 303)


def _unavailable(error: Exception) -> HTTPException:
    log.warning(LogMessage("provider of sign-in failed", error=type(error).__name__, message=str(error)))
    return HTTPException(
        502, "The OpenID Connect provider doesn't answer as it should. The log says more. Try again later."
    )
