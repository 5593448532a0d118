package apigw_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"mobilegateway/shared/apigw"
	"mobilegateway/shared/fault"
)

// For every payload, Lambda gets one valid response and the log gets one valid line.
func FuzzEvent(f *testing.F) {
	for _, name := range []string{"charge-rest", "charge-sam", "pay-rest", "sms-sam"} {
		f.Add(readGoldenEvent(f, name))
	}
	f.Add([]byte(`{"httpMethod":"POST","resource":"/mobilemoney/v1","body":"%%%","isBase64Encoded":true}`))
	f.Add([]byte(`{"httpMethod":"POST","resource":"/mobilemoney/v1","pathParameters":{"a":"%"}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		s := newGatewayFixture(t, apigw.Config{}, func(_ context.Context, r *apigw.Request) (apigw.Response, error) {
			if len(r.Body) > apigw.MaxBodyBytes {
				t.Fatal("body over the limit")
			}
			for _, value := range r.Params {
				if !utf8.ValidString(value) || strings.ContainsAny(value, "\x00\r\n") {
					t.Fatalf("parameter %q", value)
				}
			}
			if r.HasConflictingHeader("Authorization") {
				return apigw.Response{}, errors.New("plain")
			}
			return apigw.Response{Status: 200, Body: r.Body}, apigw.RequireJSON(r)
		})
		rendered := s.invoke(payload)
		if rendered.StatusCode < 200 || rendered.StatusCode > 599 {
			t.Fatalf("status %d", rendered.StatusCode)
		}
		if !json.Valid(s.log.Bytes()) || bytes.Count(s.log.Bytes(), []byte("\n")) != 1 {
			t.Fatalf("log %q", s.log.String())
		}
	})
}

func BenchmarkInvoke(b *testing.B) { benchmarkInvoke(b, handleCreated) }

func BenchmarkInvokeWithFault(b *testing.B) {
	benchmarkInvoke(b, func(context.Context, *apigw.Request) (apigw.Response, error) {
		return apigw.Response{}, fault.ForPart(fault.MissingPart, "amountTransaction.endUserId")
	})
}

func benchmarkInvoke(b *testing.B, handle handler) {
	b.Helper()
	s := newGatewayFixture(b, apigw.Config{}, handle)
	payload := readGoldenEvent(b, "charge-rest")
	b.ReportAllocs()
	for b.Loop() {
		s.log.Reset()
		if _, err := s.gateway.Invoke(b.Context(), payload); err != nil {
			b.Fatal(err)
		}
	}
}
