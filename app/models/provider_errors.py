"""Errors of providers as ours."""

from app.core.errors import ModelError, ModelRateLimited, ModelTimeout, ModelUnavailable


def error_from(name: str, error: Exception) -> ModelError:
    """Convert an exception of a provider by its HTTP status, or by the connection error that caused it."""
    from httpx import TimeoutException, TransportError

    message, status = f"{name} failed: {error}", getattr(error, "status_code", 0)
    if status == 429:
        return ModelRateLimited(message)
    cause: BaseException | None = error
    while cause and not isinstance(cause, OSError | TransportError):
        cause = cause.__cause__
    if isinstance(cause, TimeoutError | TimeoutException) or status in {408, 504}:
        return ModelTimeout(message)
    return ModelUnavailable(message) if cause or (isinstance(status, int) and status >= 500) else ModelError(message)
