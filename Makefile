# The local run takes PORT, SPEED, RESET, LOCAL_DIR and every duration of template.yaml: make run SPEED=60 RESET=1
.DEFAULT_GOAL := help
.PHONY: help run build test race lint fmt bench fuzz e2e-sam e2e-localstack ci clean
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# One quoted -ldflags: of two, Go keeps the last. An empty build id gives the same bytes in any folder.
DEPLOY = CGO_ENABLED=0 GOFLAGS="-tags=lambda.norpc -trimpath -buildvcs=false '-ldflags=-s -w -buildid='"

# Tests whose subject is other processes, built without the race detector: a second run would tell nothing new.
WITHOUT_RACE = /internal/archtest$$|/internal/localtest$$|/bench|/e2e

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## Run the whole gateway on this machine (PORT=3000 SPEED=1 RESET=1)
	@# Built under a name of its own and moved into place: another run may just start the same program.
	@go build -o .local/bin/gateway-local.$$$$ ./cmd/gateway-local && mv .local/bin/gateway-local.$$$$ .local/bin/gateway-local && exec .local/bin/gateway-local

build: ## Build the deployable bundle with SAM
	$(DEPLOY) sam build
	@for program in .aws-sam/build/*/bootstrap; do file -b $$program | grep -q 'ELF.*statically linked' || { echo "$$program is no program"; exit 1; }; done

test: ## Every test once, fuzz corpora as seeds: under five minutes on two cores
	go test -timeout 10m ./...

race: ## The tests under the race detector, but for stories over real processes
	go test -race -short -timeout 10m $$(go list ./... | grep -vE '$(WITHOUT_RACE)')

lint: ## golangci-lint by .golangci.yml, at the version that tools/lint pins
	go tool -modfile=tools/lint/go.mod golangci-lint run ./...

fmt: ## Give all Go files gofmt's form
	git ls-files -z -co --exclude-standard '*.go' | xargs -0 gofmt -w

bench: ## Measure beside a bare function; writes bench/README.md's tables
	go run ./bench

fuzz: ## Run every fuzz target for a while (FUZZTIME=30s each)
	@for package in $$(go list ./...); do \
	  targets=$$(go test -list '^Fuzz' $$package | sed -n '/^Fuzz/p'); \
	  for target in $$targets; do \
	    echo "== $$package $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),30s) $$package; \
	  done; \
	done

# Both install their tools into .local/tools (e2e/tools) and leave nothing running.
e2e-sam: ## Check the bundle and play the request stories on SAM local, arm64 programs and all (root)
	@go build -o .local/bin/e2e-sam ./e2e/sam && exec .local/bin/e2e-sam

e2e-localstack: ## Deploy to LocalStack, play all stories, deploy again under payments in flight
	@go build -o .local/bin/e2e-localstack ./e2e/localstack && exec .local/bin/e2e-localstack

ci: ## Run exactly what the continuous integration runs
	.ci/run

clean: ## Remove what was built; data of the local run stays (see RESET)
	rm -rf .aws-sam .local/bin .local/bench
