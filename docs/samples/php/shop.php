<?php

// A small shop: it sells by a charge or a payment, sends SMS, and receives notifications. docs/samples explains it.
//   SETTINGS=settings.json PHP_CLI_SERVER_WORKERS=16 php -S 127.0.0.1:8080 shop.php
// The rule that matters: each order has one key, stored before the first request. Every retry has the same key and
// body.

declare(strict_types=1);

require __DIR__ . '/../../verify/php/verify.php';
require __DIR__ . '/requests.php';

const GIVE_UP_AFTER = 23 * 3600; // seconds; later the operator may have forgotten the key
const REFUND_TEXT = 'The gateway has no refunds. Refund the customer yourself, and note it with the order.';

// Texts for the customer, by the label of the order. The labels of FINAL_LABELS never change again.
const CUSTOMER_TEXTS = [
    'checking' => 'We are checking with your operator. Do not pay again.',
    'confirm' => 'Confirm the payment on your phone.',
    'page' => 'Continue on the payment page.',
    'paid' => 'Paid. Thank you.',
    'refused' => 'You or your operator refused. Nothing was taken.',
    'no credit' => 'You do not have enough credit. Nothing was taken.',
    'not paid' => 'The payment failed. Nothing was taken.',
    'unavailable' => 'Your operator is not available. Nothing was taken. Please order again later.',
    'sent' => 'The message was sent.',
    'delivered' => 'The message was delivered.',
    'not delivered' => 'The message could not be delivered.',
    'problem' => 'Something is wrong with this order. We are looking at it. Do not pay again.',
];
const FINAL_LABELS = ['paid', 'refused', 'no credit', 'not paid', 'unavailable', 'delivered', 'not delivered'];

/** Returns the settings, which have the form of the local run's run.json. */
function settings(): array
{
    return json_decode(file_get_contents(getenv('SETTINGS') ?: '.local/run.json'), true, 512, JSON_THROW_ON_ERROR);
}

/** Returns the shop's own address, where the gateway's notifications arrive. */
function address(): string
{
    return getenv('SHOP_URL') ?: "http://{$_SERVER['SERVER_NAME']}:{$_SERVER['SERVER_PORT']}";
}

function folder(): string
{
    return getenv('SHOP_DATA') ?: 'shop-data';
}

function load(string $number): ?array
{
    $path = folder() . "/$number.json";
    return is_file($path) ? json_decode(file_get_contents($path), true, 512, JSON_THROW_ON_ERROR) : null;
}

/**
 * Changes an order as it is stored now, because a notification may have changed it during a request. Other processes
 * wait. The file is replaced in one step: a killed shop leaves the old order or the new one, never half of one.
 */
function update(string $number, callable $change): array
{
    $path = folder() . "/$number.json";
    $lock = fopen("$path.lock", 'c');
    flock($lock, LOCK_EX);
    $order = $change(load($number));
    file_put_contents("$path.new", json_encode($order, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES));
    rename("$path.new", $path);
    fclose($lock); // also unlocks
    return $order;
}

function isFinal(array $order): bool
{
    return in_array($order['label'], FINAL_LABELS, true);
}

function label(array $order, string $label): array
{
    return isFinal($order) ? $order : ['label' => $label] + $order;
}

/** Stores the order with its one key before anything is sent. The same number again is the same order. */
function create(string $number, array $wanted): void
{
    $order = [
        'number' => $number, 'kind' => $wanted['kind'] ?? '', 'amount' => $wanted['amount'] ?? null,
        'label' => 'checking', 'created' => time(), 'next' => 0, 'tries' => 0, 'seen' => [],
        'accepted' => false, 'maybeApplied' => false, 'notifToken' => null, 'paymentURL' => null,
    ];
    $order['request'] = requestFor(settings(), address(), $order, $wanted['payer'] ?? '');
    update($number, fn (?array $known) => $known ?? $order);
}

/** Does the next step of an order that is due: it sends the stored request, or looks a payment up. */
function advance(string $number): array
{
    $claimed = false;
    $order = update($number, function (array $order) use (&$claimed): array {
        if (isFinal($order) || $order['label'] === 'sent' || $order['next'] > time()) {
            return $order;
        }
        if (!$order['accepted'] && time() > $order['created'] + GIVE_UP_AFTER) {
            return label($order, 'problem'); // a person must contact the operator
        }
        $claimed = true;
        // No second request is sent meanwhile. After a crash, 35 seconds are longer than the lost request can live.
        return ['next' => time() + 35, 'tries' => $order['tries'] + 1] + $order;
    });
    if (!$claimed) {
        return $order;
    }
    $lookup = ['method' => 'GET', 'path' => "/mobilemoney/v1/getStatus/{$order['request']['key']}"];
    $response = send($order['accepted'] ? $lookup : $order['request']);
    return update($number, function (array $order) use ($response): array {
        $seconds = ($response['retryAfter'] ?? 0) ?: min(60, 2 ** $order['tries']);
        $order['next'] = time() + $seconds;
        return $order['accepted'] ? readStatus($order, $response) : readResponse($order, $response);
    });
}

/** Returns null without a response: then the request may have had its effect. */
function send(array $request): ?array
{
    $settings = settings();
    $lines = ["Authorization: Bearer {$settings['access_token']}"];
    foreach ($request['headers'] ?? [] as $name => $value) {
        $lines[] = "$name: $value";
    }
    $context = stream_context_create(['http' => [
        'method' => $request['method'], 'header' => $lines, 'content' => $request['body'] ?? '',
        'timeout' => 30, 'ignore_errors' => true, 'follow_location' => 0, 'protocol_version' => 1.1,
    ]]);
    $text = @file_get_contents($settings['base_url'] . $request['path'], false, $context);
    if ($text === false || preg_match('#\AHTTP/\S+ (\d{3})#', $http_response_header[0] ?? '', $found) !== 1) {
        return null;
    }
    $json = json_decode($text, true);
    if ($text !== '' && !is_array($json)) {
        return null; // half of a response proves nothing
    }
    $retryAfter = 0;
    foreach ($http_response_header as $line) {
        if (preg_match('/\ARetry-After: *(\d+)/i', $line, $seconds) === 1) {
            $retryAfter = (int) $seconds[1];
        }
    }
    return ['status' => (int) $found[1], 'json' => $json ?? [], 'retryAfter' => $retryAfter];
}

/** Applies the table "What may I retry?" of docs/merchants.md. No case takes a new key. */
function readResponse(array $order, ?array $response): array
{
    $status = $response['status'] ?? 0;
    $error = $response['json']['requestError'] ?? [];
    $exception = $error['serviceException'] ?? $error['policyException'] ?? [];
    $id = $exception['messageId'] ?? '';
    $reason = $exception['variables'][0] ?? '';
    if ($status === 0 || $status === 500 || $status === 504) {
        return label(['maybeApplied' => true] + $order, 'checking');
    }
    if ($status === 201) {
        return readCreated($order, $response['json']);
    }
    if ($status === 429 || ($status === 409 && $response['retryAfter'] > 0)) {
        return label($order, 'checking');
    }
    if ($status === 502 || $status === 503) {
        // This request had no effect. An earlier one without a response may have had one: then the shop never gives up.
        return label($order, $order['tries'] >= 3 && !$order['maybeApplied'] ? 'unavailable' : 'checking');
    }
    if ($status === 409 && $order['kind'] === 'sms') {
        return label($order, 'sent');
    }
    if ($status === 409 && $order['kind'] !== 'charge') {
        return ['accepted' => true] + $order; // its amount and currency show if the key is this order's
    }
    if ($id === 'POL1000' || $reason === 'Not enough credit') {
        return label($order, 'no credit');
    }
    if ((str_starts_with($id, 'POL') && $reason !== 'Daily amount limit exceeded') || $id === 'SVC0270') {
        return label($order, 'refused');
    }
    // A person must correct something; then the same request works.
    return label(['next' => time() + 60] + $order, 'problem');
}

/** Checks that the 201 is of this order, because a key that was used before returns its first response. */
function readCreated(array $order, array $body): array
{
    if ($order['kind'] === 'sms') {
        return label($order, 'sent');
    }
    if ($order['kind'] === 'charge') {
        $sent = json_decode($order['request']['body'], true)['amountTransaction'];
        $charged = $body['amountTransaction'];
        $amounts = $charged['paymentAmount']; // a notification may have only the amount of the request
        $same = $charged['referenceCode'] === $sent['referenceCode']
            && ($amounts['totalAmountCharged'] ?? $amounts['chargingInformation']['amount']) === $order['amount'];
        return label($order, $same ? 'paid' : 'problem');
    }
    $order = [
        'accepted' => true, 'notifToken' => $body['notif_token'] ?? null, 'paymentURL' => $body['payment_url'] ?? null,
        'next' => time() + 5, // the notification is faster; the lookup is for the case that it is lost
    ] + $order;
    return label($order, isset($body['payment_url']) ? 'page' : 'confirm');
}

/** Reads getStatus. A 404 proves nothing: the same request is sent again. */
function readStatus(array $order, ?array $response): array
{
    return match ($response['status'] ?? 0) {
        200 => readPaymentStatus($order, $response['json']),
        404 => ['accepted' => false, 'maybeApplied' => true] + $order,
        default => $order,
    };
}

function readPaymentStatus(array $order, array $body): array
{
    $sent = json_decode($order['request']['body'], true);
    if ($body['amount'] !== $sent['amount'] || $body['currency'] !== $sent['currency']) {
        return label($order, 'problem');
    }
    return match ($body['status']) {
        'pending' => $order,
        'successful' => label($order, 'paid'),
        default => label($order, 'not paid'), // failed, cancelled or expired
    };
}

/** Verifies a notification and applies it once. It returns the HTTP status of the response. */
function notified(string $raw): int
{
    $id = $_SERVER['HTTP_WEBHOOK_ID'] ?? null;
    $timestamp = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? null;
    try {
        verify(settings()['webhook_secret'], $id, $timestamp, $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? null, $raw, time());
    } catch (UnexpectedValueException) {
        return 400;
    }
    $body = json_decode($raw, true, 512, JSON_THROW_ON_ERROR);
    $receipt = $body['deliveryInfoNotification'] ?? null;
    // A refused charge has its key beside requestError.
    $key = $body['amountTransaction']['clientCorrelator'] ?? $body['order-id'] ?? '';
    $number = $receipt['callbackData'] ?? preg_split('/[-_]/', $key)[1] ?? '';
    if (preg_match('/\A[0-9]{1,19}\z/', $number) !== 1 || load($number) === null) {
        return 200; // not of this shop: a retry would not help
    }
    update($number, function (array $order) use ($id, $body, $receipt): array {
        if (in_array($id, $order['seen'], true)) {
            return $order; // the same notification may come twice
        }
        $order['seen'][] = $id;
        if ($receipt !== null) {
            return readReceipt($order, $receipt['deliveryInfo']['deliveryStatus']);
        }
        if (isset($body['amountTransaction'])) {
            return isset($body['requestError'])
                ? readResponse($order, ['status' => 403, 'json' => $body])
                : readCreated($order, $body);
        }
        $isForged = $order['notifToken'] !== null && ($body['notif_token'] ?? '') !== $order['notifToken'];
        return $isForged ? label($order, 'problem') : readPaymentStatus($order, $body);
    });
    return 200;
}

function readReceipt(array $order, string $status): array
{
    return match ($status) {
        'DeliveredToTerminal' => label($order, 'delivered'),
        'DeliveryImpossible' => label($order, 'not delivered'),
        default => label($order, 'sent'),
    };
}

function view(array $order): array
{
    return [
        'number' => $order['number'], 'kind' => $order['kind'], 'label' => $order['label'],
        'customer' => CUSTOMER_TEXTS[$order['label']], 'key' => $order['request']['key'],
        'payment_url' => $order['paymentURL'], 'notifications' => count($order['seen']),
    ];
}

/** Returns the status and the body of a page. */
function route(string $raw): array
{
    [, $what, $number, $act] = explode('/', $_SERVER['REQUEST_URI']) + ['', '', '', ''];
    $call = "{$_SERVER['REQUEST_METHOD']} $what";
    if ($call === 'POST webhook') {
        return [notified($raw), []];
    }
    if ($call === 'POST work') {
        $numbers = array_map(fn (string $path) => basename($path, '.json'), glob(folder() . '/*.json'));
        return [200, array_map(fn (string $number) => view(advance($number)), $numbers)];
    }
    if ($what !== 'orders' || preg_match('/\A[0-9]{1,19}\z/', $number) !== 1) {
        return [404, ['error' => 'no such page']];
    }
    if ($call === 'PUT orders') {
        create($number, json_decode($raw, true, 512, JSON_THROW_ON_ERROR));
        return [200, view(advance($number))];
    }
    if (load($number) === null) {
        return [404, ['error' => 'no such order']];
    }
    return $act === 'refund' ? [501, ['error' => REFUND_TEXT]] : [200, view(load($number))];
}

if (!is_dir(folder())) {
    @mkdir(folder(), 0o777, true); // another process may be faster
}
try {
    [$status, $body] = route(file_get_contents('php://input'));
} catch (Throwable $fault) {
    [$status, $body] = [500, ['error' => $fault->getMessage()]];
}
http_response_code($status);
header('Content-Type: application/json');
echo json_encode($body, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES);
