<?php

declare(strict_types=1);

/**
 * Builds the one request of an order: its key, path, headers and body, without the token. A retry sends these bytes
 * again. The order's number is part of the key, so that an order never has a second one.
 */
function requestFor(array $settings, string $address, array $order, string $payer): array
{
    $amountIsValid = preg_match('/\A[0-9]{1,12}\z/', $order['amount'] ?? '0') === 1;
    if (!$amountIsValid || preg_match('/\A\+?[0-9]{6,20}\z/', $payer) !== 1) {
        throw new UnexpectedValueException('an order has an amount and a payer');
    }
    [$key, $path, $headers, $body] = match ($order['kind']) {
        'charge' => charge($settings, $order, $payer),
        'ussd', 'web' => payment($settings, $address, $order, $payer),
        'sms' => sms($settings, $address, $order, $payer),
        default => throw new UnexpectedValueException('an order has a kind: charge, ussd, web or sms'),
    };
    return [
        'key' => $key, 'method' => 'POST', 'path' => $path,
        'headers' => ['Content-Type' => 'application/json'] + $headers,
        'body' => json_encode($body, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES),
    ];
}

function charge(array $settings, array $order, string $payer): array
{
    $key = "charge-{$order['number']}";
    return [
        $key,
        '/payment/v1/acr%3AOperatorAPIToken/transactions/amount',
        ['gw-token' => $settings['gw_token'], 'gw-alias' => $payer],
        ['amountTransaction' => [
            'endUserId' => 'acr:OperatorAPIToken',
            'paymentAmount' => [
                'chargingInformation' => [
                    'amount' => $order['amount'], 'currency' => 'XOF', 'description' => 'A song',
                ],
                'chargingMetaData' => [
                    'onBehalfOf' => $settings['on_behalf_of'], 'serviceId' => $settings['service_id'],
                ],
            ],
            'transactionOperationStatus' => 'Charged',
            'referenceCode' => "REF-{$order['number']}",
            'clientCorrelator' => $key,
        ]],
    ];
}

function payment(array $settings, string $address, array $order, string $payer): array
{
    $key = "{$settings['merchant']}_{$order['number']}";
    $page = "$address/orders/{$order['number']}";
    return [
        $key,
        '/mobilemoney/v1',
        ['mno-name' => 'orange', 'country-code' => 'CI', 'channel' => $order['kind'], 'lang' => 'fr'],
        [
            'order_id' => $key, 'amount' => $order['amount'], 'currency' => 'XOF',
            'reference' => $settings['merchant'], 'state' => "order {$order['number']}", 'user_msisdn' => $payer,
            'notif_url' => "$address/webhook", 'return_url' => $page, 'cancel_url' => $page,
        ],
    ];
}

function sms(array $settings, string $address, array $order, string $payer): array
{
    $key = "sms-{$order['number']}";
    return [
        $key,
        '/smsmessaging/v1/outbound/tel%3A%2B2250000/requests',
        [
            'gw-token' => $settings['gw_token'], 'gw-alias' => $payer,
            'X-Operator-MCO' => 'OCI', 'X-Operator-ISE2' => $payer,
            'X-OAPI-Application-Id' => $settings['application_id'],
            'X-OAPI-Contact-Id' => $settings['contact_id'], 'X-OAPI-Resource-Type' => 'SMS_OSM',
        ],
        ['outboundSMSMessageRequest' => [
            'address' => ['acr:X-Operator-ISE2'], 'senderAddress' => 'tel:+2250000',
            'outboundSMSTextMessage' => ['message' => 'Your%20parcel%20is%20here'],
            'senderName' => $settings['on_behalf_of'], 'clientCorrelator' => $key,
            'receiptRequest' => ['notifyURL' => "$address/webhook", 'callbackData' => $order['number']],
        ]],
    ];
}
