"""The OpenID Connect provider of [sign_in]: its metadata, the way there, and what it says of a person.

Authlib does the authorization code flow with PKCE and checks the ID token (OpenID Connect Core 1.0, section 3.1). Here is what it leaves
to its caller: which metadata and algorithms are accepted, how much is read, and whom the user info is about.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.integrations.starlette_client import OAuthError, StarletteIntegration, StarletteOAuth2App
from httpx2 import Response, create_ssl_context
from pydantic import BaseModel, Field, ValidationError
from starlette.requests import Request

from app.core.errors import ProviderError, quoted
from app.core.settings_types import Url
from app.http.keys import SignInTable

MOST_BYTES = 65_536  # that are read of one answer
TIMEOUT = 10.0  # seconds
FRESH = 3600.0  # seconds for which metadata and keys are used without being read again
PAUSE = 5.0  # seconds for which a provider that failed isn't asked for its metadata again
ALGORITHMS = frozenset({
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
})  # fmt: skip
"""Signatures of ID tokens that only the provider can make: neither `none`, nor one with a secret that both sides know."""


class Metadata(BaseModel):
    """What is used of the metadata of a provider (OpenID Connect Discovery 1.0, section 3)."""

    issuer: str
    authorization_endpoint: Url = Field(min_length=1)
    token_endpoint: Url = Field(min_length=1)
    jwks_uri: Url = Field(min_length=1)
    userinfo_endpoint: Url = ""
    id_token_signing_alg_values_supported: list[str] = ["RS256"]


class _Client(AsyncOAuth2Client):  # type: ignore[misc]  # the library has no types
    async def send(self, request: Any, **options: Any) -> Response:
        """Send the request. Raises `ProviderError` for an answer of more than `MOST_BYTES`."""
        answer: Response = await super().send(request, **{**options, "stream": True})
        body = bytearray()
        try:
            async for piece in answer.aiter_raw():  # as it came: a few bytes could become gigabytes
                body += piece
                if len(body) > MOST_BYTES:
                    raise ProviderError(f"{request.url.path} has more than {MOST_BYTES:,} bytes.")
        finally:
            await answer.aclose()
        return Response(answer.status_code, content=bytes(body), request=answer.request)


class Provider(StarletteOAuth2App):  # type: ignore[misc]  # as above
    """The provider of this table. All methods raise `ProviderError` if it answers otherwise than it should."""

    client_cls = _Client

    def __init__(self, table: SignInTable) -> None:
        self._issuer, self._root = table.issuer, table.roles_claim.partition(".")[0]
        self._reading, self._until, self._failed = asyncio.Lock(), 0.0, ""
        super().__init__(
            StarletteIntegration("provider"),
            "provider",
            client_id=table.client_id,
            client_secret=table.client_secret.get_secret_value(),
            client_kwargs={
                "scope": " ".join(table.scopes),
                "code_challenge_method": "S256",
                "timeout": TIMEOUT,
                "headers": {"accept-encoding": "identity"},
                "verify": create_ssl_context(),  # made once: it takes 25 ms, and each client would make its own
            },
        )

    async def redirect(self, request: Request, back: str, *, silent: bool) -> Any:
        """The way to the provider, which leads back to this address; a `silent` one asks the person for nothing."""
        try:
            return await self.authorize_redirect(request, back, **({"prompt": "none"} if silent else {}))
        except ProviderError:
            raise
        except Exception as error:  # another program: anything can come back
            raise _wrong(error) from error

    async def claims(self, request: Request) -> Mapping[str, Any]:
        """What the provider says of who comes back; the ID token counts more than the user info.

        Raises `OAuthError` if they said no there, or come back with an old address.
        """
        try:
            said, more = await self._said(request)
        except (ProviderError, OAuthError):
            raise
        except Exception as error:
            raise _wrong(error) from error
        if not isinstance(said.get("sub"), str) or not said["sub"]:
            raise ProviderError("The answer has no ID token with a `sub`.")
        if more and more.get("sub") != said["sub"]:  # OpenID Connect Core 1.0, section 5.3.2
            raise ProviderError("The user info is about somebody else than the ID token.")
        return {**more, **said}

    async def _said(self, request: Request) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the ID token says, and the user info where it is needed for the roles."""
        token = await self.authorize_access_token(request)
        said = dict(token.get("userinfo") or {})
        if not said or self._root in said or not self.server_metadata["userinfo_endpoint"]:
            return said, {}
        return said, dict(await self.userinfo(token=token)) or {"sub": None}

    async def load_server_metadata(self) -> Mapping[str, Any]:
        """The metadata, read by one request for all, and again after an hour."""
        async with self._reading:
            if time.monotonic() >= self._until:
                try:
                    self.server_metadata, self._failed = await self._read(), ""
                except Exception as error:  # noqa: BLE001  # raised below, for all who wait
                    self._failed = str(error if isinstance(error, ProviderError) else _wrong(error))
                self._until = time.monotonic() + (PAUSE if self._failed else FRESH)
        if self._failed:
            raise ProviderError(self._failed)
        return self.server_metadata

    async def _read(self) -> dict[str, Any]:
        address = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
        async with self._get_session() as client:
            answer = await client.request("GET", address, withhold_token=True)
        answer.raise_for_status()
        try:
            read = Metadata.model_validate_json(answer.content)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the whole"
            raise ProviderError(f"{address} is wrong in {place}: {first['msg']}.") from None
        if read.issuer.rstrip("/") != self._issuer.rstrip("/"):
            raise ProviderError(f"{address} names the issuer {quoted(read.issuer)}, but [sign_in] {self._issuer!r}.")
        known = [name for name in read.id_token_signing_alg_values_supported if name in ALGORITHMS]
        if not known:
            raise ProviderError(f"{address} lists no signature of ID tokens that is accepted: {', '.join(ALGORITHMS)}.")
        return {**read.model_dump(), "id_token_signing_alg_values_supported": known}


def _wrong(error: Exception) -> ProviderError:
    return ProviderError(f"It doesn't answer as it should: {type(error).__name__}: {error}")
