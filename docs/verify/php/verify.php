<?php

// Verifies one notification. WEBHOOK_SECRET is the secret. The arguments are webhook-id, webhook-timestamp and
// webhook-signature, the standard input is the raw body. Copy the function verify into your server; it needs PHP 8.

declare(strict_types=1);

/**
 * Throws if a notification is not authentic. $body is the raw body, file_get_contents('php://input'). $signatures is
 * the whole header webhook-signature, which contains two signatures during a rotation. An absent header is null or ''.
 */
function verify(string $secret, ?string $id, ?string $timestamp, ?string $signatures, string $body, int $now): void
{
    $key = base64_decode(str_starts_with($secret, 'whsec_') ? substr($secret, 6) : $secret, true);
    if ($key === false || $key === '') {
        throw new UnexpectedValueException('the secret is not whsec_ and base64');
    }
    if (
        preg_match('/\A[!-~]{1,256}\z/', $id ?? '') !== 1
        || preg_match('/\A[0-9]{1,15}\z/', $timestamp ?? '') !== 1
        || ($signatures ?? '') === ''
    ) {
        throw new UnexpectedValueException('a header is missing or malformed');
    }
    if (abs($now - (int) $timestamp) > 300) {
        throw new UnexpectedValueException('the timestamp is not within 5 minutes');
    }
    $want = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $signatures) as $signature) {
        if (hash_equals($want, $signature)) {
            return;
        }
    }
    throw new UnexpectedValueException('no signature matches');
}

if (PHP_SAPI === 'cli' && realpath($argv[0]) === __FILE__) {
    if ($argc !== 4 || getenv('WEBHOOK_SECRET') === false) {
        fwrite(STDERR, "WEBHOOK_SECRET=whsec_... verify.php ID TIMESTAMP SIGNATURE < BODY\n");
        exit(1);
    }
    try {
        [, $id, $timestamp, $signatures] = $argv;
        $body = file_get_contents('php://stdin');
        verify((string) getenv('WEBHOOK_SECRET'), $id, $timestamp, $signatures, $body, time());
    } catch (UnexpectedValueException $fault) {
        fwrite(STDERR, $fault->getMessage() . "\n");
        exit(1);
    }
    echo "verified\n";
}
