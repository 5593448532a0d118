# The local run takes PORT, SPEED, RESET, STANDINS, LOCAL_DIR and every duration of template.yaml: make run SPEED=60
.DEFAULT_GOAL := help
.PHONY: help run build test test-slow race lint template policies licences secrets scripts fmt bench fuzz e2e-sam e2e-dynamodb e2e-localstack e2e-browser hang chaos prose simulate knownbad backlog capacity mutate preflight deploy rollback abort e2e smoke contract postman reference sbom vulnerabilities ci clean
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# -ldflags must be one quoted flag, because Go keeps only the last. An empty build id makes equal bytes in any folder.
DEPLOY = CGO_ENABLED=0 GOFLAGS="-tags=lambda.norpc -trimpath -buildvcs=false '-ldflags=-s -w -buildid='"

# The race detector runs in the packages that start goroutines or share data between them, in code or in tests.
CONCURRENT = \bgo func|\.Go\(|^\s+go [a-z]|"sync"|"sync/atomic"|t\.Parallel

# In these it would find nothing: tests of other processes, which are built without it, and tests that compare files.
# The simulator runs one task at a time; the race detector does not see that, because sync.WaitGroup.Wait disables it
# while it parks.
WITHOUT_RACE = ^(bench|deploy|docs|e2e|tools)(/|$$)|^proof/(imports|contract|iamcheck|pages|kits/localtest|simulate|simulate/knownbad.*)$$

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## Run the whole gateway on this machine (PORT=3000 SPEED=1 RESET=1 STANDINS=1)
	@# The program is built under a temporary name and moved, because another run may be starting it. The functions are
	@# built with the same flags, so that a fresh clone compiles nothing twice.
	@$(DEPLOY) go build -o .local/bin/gateway-local.$$$$ ./cmd/gateway-local && \
	  mv .local/bin/gateway-local.$$$$ .local/bin/gateway-local && PARENT_PID=$$PPID exec .local/bin/gateway-local

build: ## Build the deployable bundle with SAM
	$(DEPLOY) sam build
	@for program in .aws-sam/build/*/bootstrap; do \
	  file -b $$program | grep -q 'ELF.*statically linked' || { echo "$$program is not a static program"; exit 1; }; \
	done

	@go run ./tools/sbom .aws-sam/build .aws-sam/bundle.cdx.json

sbom: ## Write the CycloneDX SBOM of what ships to .local/sbom/bundle.cdx.json
	@for function in functions/*/bootstrap; do \
	  name=$${function#functions/}; \
	  $(DEPLOY) GOOS=linux GOARCH=arm64 go build -o .local/sbom/$${name%/*}/bootstrap ./$$function; \
	done
	@go run ./tools/sbom .local/sbom .local/sbom/bundle.cdx.json

vulnerabilities: ## Search the database of Go for known vulnerabilities in what ships and in the tools
	@tools/govulncheck/check

# The tests that make test leaves to make test-slow: each takes more than a few seconds of a processor, or waits longer.
SLOW = \
  TestGuides TestLocalSamples TestQuickstart TestSamples TestCircuitOfLocalRun TestExport TestFaultyMerchantServer \
  TestFindAndAttention TestFreezeBetweenEvents TestKillBetweenCalls TestKillWithPaymentsInFlight \
  TestNotificationLatency TestOnboardingByTool TestOperatorCredentials TestRevocation TestMakeRun \
  TestExitStopsAllProcesses TestRunEndsWithParent TestStubs TestTimelineExplainsEachEnding TestUnknownOutcomes \
  TestLeaksEndWithinAMinute TestUnaffectedMerchantsAreNotLate TestHostileBacklogEnds TestEverythingDueIsReached \
  TestNothingDue TestRows TestReductions TestOnePlatformHangs TestCircuitsAreReached TestKnownBad \
  TestForcedChoicesAreDrawn TestBodyConstraints TestCountryConstraints TestHeaderConstraints TestPerformanceLimits \
  TestCapacity TestSBOMListsWhatIsLinked TestExportMemoryIsConstant

# One expression divides the tests, so each test is in exactly one of the two targets.
space := $() $()
slow = ($(subst $(space),|,$(strip $(SLOW))))

# The stories mostly wait, so one package more than there are processors runs at a time. Linking is half of the work:
# without tables for debuggers it takes 40 % less. golangci-lint vets the code.
GO_TEST = go test -p $$(($$(nproc) + 1)) -vet=off -ldflags='-s -w'

test: ## Run the tests once, except the slow ones: at most two minutes on two cores
	$(GO_TEST) -timeout 10m -skip '^$(slow)$$' ./...

test-slow: ## Run the slow tests: guides, samples, runbooks, killed processes, backlogs, long searches
	$(GO_TEST) -timeout 20m -run '^$(slow)$$' \
	  $$(git grep -lE '^func $(slow)\(t ' -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's|^|./|')

race: ## Run the tests of concurrent packages under the race detector, except stories over real processes
	go test -race -short -timeout 10m $$(git grep -lE '$(CONCURRENT)' -- '*.go' | xargs -n 1 dirname | sort -u | \
	  grep -vE '$(WITHOUT_RACE)' | sed 's|^|./|')

lint: ## Run golangci-lint by .golangci.yml, after a proof that it finds planted offences
	@tools/lint/check

template: ## Check every CloudFormation template with cfn-lint and checkov, also for gradual deployment
	@e2e/tools/install sam && e2e/tools/install checkov
	@.local/tools/sam-cli/bin/python -m unittest discover -s tools/template -p '*_test.py'
	@.local/tools/sam-cli/bin/python tools/template/check.py

policies: ## Let iam-simulate evaluate each role on the calls of a local run, and on calls that differ in one part
	@tools/policies/check

licences: ## Check the licence of every dependency, of tools too, against tools/licences/policy.toml
	@e2e/tools/install pip-licenses
	@.local/tools/pip-licenses/bin/python -m unittest discover -s tools/licences -p '*_test.py'
	@.local/tools/pip-licenses/bin/python tools/licences/check.py

secrets: ## Scan the work tree and the history for secrets, after a proof that gitleaks finds planted ones
	@tools/gitleaks/scan

scripts: ## Check every shell script with shellcheck, and every workflow with actionlint
	@tools/scripts/check

prose: ## vale and the table of names over pages, comments, texts and declared names (FILES="path ..." COUNT=1)
	@python3 -B -m unittest discover -s tools/prose -p '*_test.py'
	@python3 -B tools/prose/check.py $(if $(COUNT),--count) $(FILES)
	@python3 -B tools/prose/words.py $(if $(COUNT),,--check)

mutate: ## Mutate the packages that protect money, and run the simulator on what their tests miss (PACKAGES="path ...")
	@python3 -B -m unittest discover -s tools/mutate -p '*_test.py'
	@python3 -B tools/mutate/mutate.py $(PACKAGES)

fmt: ## Give all Go files gofmt's form
	git ls-files -z -co --exclude-standard '*.go' | xargs -0 gofmt -w

bench: ## Measure functions beside a bare one, and the local run as its data grows; writes bench/README.md's tables
	go run ./bench

fuzz: ## Run every fuzz target for a while (FUZZTIME=30s each)
	@for package in $$(go list ./...); do \
	  targets=$$(go test -list '^Fuzz' $$package | sed -n '/^Fuzz/p'); \
	  for target in $$targets; do \
	    echo "== $$package $$target"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),30s) $$package; \
	  done; \
	done

# These install their tools into .local/tools (e2e/tools) and clean up, also after a failure.
e2e-sam: ## Check the bundle and run the stories on SAM local, with arm64 programs too (root)
	@go build -o .local/bin/e2e-sam ./e2e/sam && exec .local/bin/e2e-sam

e2e-dynamodb: ## Run all tests and stories that use DynamoDB on DynamoDB Local
	@go build -o .local/bin/e2e-dynamodb ./e2e/dynamodb && exec .local/bin/e2e-dynamodb

e2e-localstack: ## Deploy to LocalStack, run all stories, deploy again during payments (EMPTY_ACCOUNT=1: only the first way to a payment)
	@go build -o .local/bin/e2e-localstack ./e2e/localstack && \
	  exec .local/bin/e2e-localstack $(if $(call typed,EMPTY_ACCOUNT),-empty-account)

# typed is a variable of make's command line. One of the shell's environment must not choose what is deployed.
typed = $(if $(filter command,$(origin $(1))),$($(1)))

deploy_with = @go build -o .local/bin/deploy ./deploy && $(DEPLOY) .local/bin/deploy -env $(or $(call typed,ENV),dev)

preflight: ## Check the account and the parameters of a deployment, and deploy nothing (ENV=prod STACK=name PARAMETERS="...")
	$(deploy_with) -preflight $(if $(call typed,STACK),-stack $(call typed,STACK)) $(call typed,PARAMETERS)

deploy: ## Deploy a stack (ENV=dev|staging|prod STACK=name PARAMETERS="Name=value ..." GRADUAL=1 WAF=1 YES=1)
	$(deploy_with) \
	  -gradual='$(call typed,GRADUAL)' -waf='$(call typed,WAF)' -yes='$(call typed,YES)' \
	  $(if $(call typed,STACK),-stack $(call typed,STACK)) $(call typed,PARAMETERS)

rollback: ## Move a stack's aliases to the version before; a dry run without YES=1 (ENV=dev|staging|prod STACK=name)
	$(deploy_with) -rollback -yes='$(call typed,YES)' $(if $(call typed,STACK),-stack $(call typed,STACK))

abort: ## Stop the deployment of a stack that runs, and return to the version before (ENV=dev|staging|prod STACK=name YES=1)
	$(deploy_with) -abort -yes='$(call typed,YES)' $(if $(call typed,STACK),-stack $(call typed,STACK))

e2e: ## Run all stories on a deployed stack, or on the one that a run.json describes (TARGET=name or path)
	@go build -o .local/bin/e2e-target ./e2e/target && exec .local/bin/e2e-target "$(TARGET)"

smoke: ## Run the safe checks of a deployment, also of production (BASE_URL=https://...; docs/deploy.md)
	@test -n "$(BASE_URL)" || { echo "make smoke BASE_URL=https://..." >&2; exit 2; }
	SMOKE_BASE_URL="$(BASE_URL)" go test -count=1 -v ./e2e -run '^TestSmoke$$'

e2e-browser: ## Pay on the payment page in a headless Chromium with axe-core (SCREENSHOTS=1 renews docs/screenshots)
	@e2e/browser/install && E2E_BROWSER=1 go test -count=1 -timeout 5m -parallel 4 ./e2e/browser

hang: ## Let one of four platforms hang for real processes, and compare what the others get with a healthy run
	@E2E_HANG=1 go test -count=1 -v -timeout 5m ./e2e -run '^TestOnePlatformHangs$$'

chaos: ## Fail parts of a local run under load, then count orders and effects (CHAOS_MINUTES=20 CHAOS_SEED=n)
	@CHAOS_MINUTES=$(or $(CHAOS_MINUTES),20) CHAOS_SEED=$(CHAOS_SEED) \
	  go test -count=1 -v -timeout 0 ./e2e/chaos -run '^TestChaos$$'

simulate: ## Run the functions through hostile histories in a simulated world (SEEDS=10000 FIRST=n SEED=n ALL=1 ROWS=1 EXHAUSTIVE=1)
	@go test -count=1 -v -timeout 0 ./proof/simulate $(if $(EXHAUSTIVE),-run '^TestExhaustive$$' \
	  -exhaustive $(EXHAUSTIVE),-run '^Test$(if $(ROWS),Rows,Seeds)$$' \
	  $(if $(SEED),-seed $(SEED) $(if $(ALL),-all),-seeds $(or $(SEEDS),10000) -first $(or $(FIRST),$$(date +%s%N))))

knownbad: ## Let the simulator find every deliberate bug, by a recorded seed or a search (SEEDS=n RECORD=1 ONLY=regexp)
	@go test -count=1 -v -timeout 0 ./proof/simulate/knownbad -run '^TestKnownBad$$' \
	  -seeds $(or $(SEEDS),3000) -only '$(ONLY)' -record=$(if $(RECORD),true,false)

backlog: ## Sweep 100,000 due entries, with an operator, a server and a profile that fail: others are not late
	@go test -count=1 -v -timeout 10m ./functions/sweep -run '^TestUnaffectedMerchantsAreNotLate$$' -backlog 100000

capacity: ## Measure the sweep and the relay under a CPU quota (root); writes docs/scale.md (ENTRIES=10000)
	@go build -o .local/bin/capacity ./bench/capacity && exec .local/bin/capacity -entries $(or $(ENTRIES),10000)

contract: ## Compare a local run with docs/openapi.yaml by schemathesis: thousands of cases, valid and invalid
	@CONTRACT=1 go test -count=1 -v -timeout 0 ./tools/schemathesis -run '^TestContract$$'

postman: ## Make the Postman collection from the contract, and run it by newman against a local run
	@POSTMAN=1 go test -count=1 -v -timeout 0 ./tools/postman -run '^TestCollection$$'

reference: ## Render docs/openapi.yaml as the page .local/reference.html
	@proof/contract/page/render .local/reference.html

ci: ## Run exactly what the continuous integration runs
	.ci/run

clean: ## Remove the build results; data of the local run stays (see RESET)
	rm -rf .aws-sam .local/bin .local/bench
