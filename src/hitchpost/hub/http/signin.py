"""What the sign-in routes share: the tokens, the hub's address, and the version of its page."""

from __future__ import annotations

import asyncio

from hitchpost.hub.http.grants import Grant
from hitchpost.hub.http.in_progress import Held
from hitchpost.hub.http.static import version
from hitchpost.hub.http.tokens import Tokens


class SignIn:
    """``url`` is set once the hub listens."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.url = ""
        self.page_version = version()

    async def launch_url(self, grant: Grant, lasts_s: float) -> str:
        """A URL that signs a browser in, once, with this grant."""
        return f"{self.url}#code={await self.tokens.launch_code(grant, lasts_s)}"

    async def sign_out(self, held: Held) -> None:
        """Forget the browser of a request and end all that it has open, but for that request."""
        self.tokens.live.let_go(held)
        await asyncio.to_thread(self.tokens.sign_out, held.credential.key)
        self.tokens.forget_pages(held.credential.key)
        await self.tokens.live.check()
