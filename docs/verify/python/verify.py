"""Verifies one notification. WEBHOOK_SECRET is the secret. The arguments are webhook-id, webhook-timestamp and
webhook-signature, the standard input is the raw body. Copy the function verify into your server (Python 3.8)."""

import base64
import hashlib
import hmac
import os
import re
import sys
import time
from typing import Optional


def verify(
    secret: str, id: Optional[str], timestamp: Optional[str], signatures: Optional[str], body: bytes, now: float
) -> None:
    """Raises ValueError if a notification is not authentic. body is the raw body, byte for byte. signatures is the
    whole header webhook-signature, which contains two signatures during a rotation. An absent header is None or ""."""
    try:
        key = base64.b64decode(secret[len("whsec_"):] if secret.startswith("whsec_") else secret)
    except ValueError:
        key = b""
    if not key:
        raise ValueError("the secret is not whsec_ and base64")
    if not (re.fullmatch("[!-~]{1,256}", id or "") and re.fullmatch("[0-9]{1,15}", timestamp or "") and signatures):
        raise ValueError("a header is missing or malformed")
    if abs(now - int(timestamp)) > 300:
        raise ValueError("the timestamp is not within 5 minutes")
    digest = hmac.new(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    want = b"v1," + base64.b64encode(digest)
    given = signatures.encode("utf-8", "replace").split(b" ")
    if not any(hmac.compare_digest(signature, want) for signature in given):
        raise ValueError("no signature matches")


if __name__ == "__main__":
    if len(sys.argv) != 4 or "WEBHOOK_SECRET" not in os.environ:
        sys.exit("WEBHOOK_SECRET=whsec_... verify.py ID TIMESTAMP SIGNATURE < BODY")
    try:
        id, timestamp, signatures = sys.argv[1:]
        verify(os.environ["WEBHOOK_SECRET"], id, timestamp, signatures, sys.stdin.buffer.read(), time.time())
    except ValueError as fault:
        sys.exit(str(fault))
    print("verified")
