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

// Whatever comes in, Lambda gets one valid answer and the log one valid line.
func FuzzEvent(f *testing.F) {
	for _, name := range []string{"charge-rest", "charge-sam", "pay-rest", "sms-sam"} {
		f.Add(readGoldenEvent(f, name))
	}
	f.Add([]byte(`{"httpMethod":"POST","resource":"/mobilemoney/v1","body":"%%%","isBase64Encoded":true}`))
	f.Add([]byte(`{"httpMethod":"POST","resource":"/mobilemoney/v1","pathParameters":{"a":"%"}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		s := newGatewayFixture(apigw.Config{}, func(_ context.Context, r *apigw.Request) (apigw.Response, error) {
			if len(r.Body) > apigw.DefaultMaxBodyBytes {
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
		rendered := s.invoke(t, payload)
		if rendered.StatusCode < 200 || rendered.StatusCode > 599 {
			t.Fatalf("answer %+v", rendered)
		}
		if !json.Valid(s.log.Bytes()) || bytes.Count(s.log.Bytes(), []byte("\n")) != 1 {
			t.Fatalf("log %q", s.log.String())
		}
	})
}

func BenchmarkInvoke(b *testing.B) {
	s := newGatewayFixture(apigw.Config{}, handleCreated)
	payload := readGoldenEvent(b, "charge-rest")
	b.ReportAllocs()
	for b.Loop() {
		s.log.Reset()
		_, err := s.gateway.Invoke(b.Context(), payload)
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInvokeWithFault(b *testing.B) {
	s := newGatewayFixture(apigw.Config{}, func(context.Context, *apigw.Request) (apigw.Response, error) {
		return apigw.Response{}, fault.ForPart(fault.MissingPart, "amountTransaction.endUserId")
	})
	payload := readGoldenEvent(b, "charge-rest")
	b.ReportAllocs()
	for b.Loop() {
		s.log.Reset()
		_, err := s.gateway.Invoke(b.Context(), payload)
		if err != nil {
			b.Fatal(err)
		}
	}
}
