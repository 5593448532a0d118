<?php

// Judges one notification: the secret in WEBHOOK_SECRET, webhook-id, webhook-timestamp and webhook-signature as arguments, the
// raw body on the standard input. A merchant's server takes over the function verify; it needs nothing but PHP 8.

declare(strict_types=1);

/**
 * Throws unless a notification is genuine. $body is the raw body, file_get_contents('php://input'); $signatures is the whole
 * header, which holds two during a rotation.
 */
function verify(string $secret, string $id, string $timestamp, string $signatures, string $body, int $now): void
{
    $key = base64_decode(str_starts_with($secret, 'whsec_') ? substr($secret, 6) : $secret, true);
    if ($key === false || $key === '') {
        throw new UnexpectedValueException('the secret is not one: whsec_ and base64');
    }
    if (preg_match('/\A[0-9]{1,15}\z/', $timestamp) !== 1 || abs($now - (int) $timestamp) > 300) {
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
        verify((string) getenv('WEBHOOK_SECRET'), $id, $timestamp, $signatures, file_get_contents('php://stdin'), time());
    } catch (UnexpectedValueException $fault) {
        fwrite(STDERR, $fault->getMessage() . "\n");
        exit(1);
    }
    echo "verified\n";
}
