package lambda_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// bootstrap is the program of the tests' functions: a minimal client of the Runtime API.
func bootstrap(mode string) int {
	base := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/runtime/"
	switch mode {
	case "exit":
		return 3
	case "sleep":
		time.Sleep(time.Minute)
		return 0
	case "initerror":
		postJSON(base+"init/error", `{"errorType":"Init.Error","errorMessage":"no settings"}`)
		return 1
	}
	for {
		response, err := http.Get(base + "invocation/next")
		if err != nil {
			return 1
		}
		payload, err := io.ReadAll(response.Body)
		if err != nil {
			return 1
		}
		_ = response.Body.Close()
		id := response.Header.Get("Lambda-Runtime-Aws-Request-Id")
		if string(payload) == `"error"` {
			postJSON(base+"invocation/"+id+"/error", `{"errorType":"Test.Error","errorMessage":"requested"}`)
			continue
		}
		postJSON(base+"invocation/unknown/response", `"a response to an unknown event"`)
		postJSON(base+"invocation/"+id+"/response", handleEvent(string(payload), response.Header))
	}
}

// handleEvent does what the event requests and returns the response.
func handleEvent(payload string, header http.Header) string {
	switch payload {
	case `"die"`:
		os.Exit(7)
	case `"hang"`:
		time.Sleep(time.Minute)
	case `"slow"`:
		time.Sleep(200 * time.Millisecond)
	case `"huge"`:
		return string(bytes.Repeat([]byte("x"), 6<<20+1))
	case `"child"`:
		child := exec.Command("/bin/sleep", "60")
		if err := child.Start(); err == nil {
			return strconv.Itoa(child.Process.Pid)
		}
	case `"print"`:
		_, _ = os.Stdout.WriteString("to stdout, ")
		_, _ = os.Stdout.WriteString("in two writes\n")
		_, _ = os.Stderr.WriteString("to stderr\nwithout a newline")
	case `"echo"`:
		return echoHeaders(header)
	}
	return strconv.Itoa(os.Getpid())
}

// echoHeaders returns the headers and variables that the process got.
func echoHeaders(header http.Header) string {
	deadline, _ := strconv.ParseInt(header.Get("Lambda-Runtime-Deadline-Ms"), 10, 64)
	body, _ := json.Marshal(map[string]any{
		"ID": header.Get("Lambda-Runtime-Aws-Request-Id"), "Trace": header.Get("Lambda-Runtime-Trace-Id"),
		"ARN": header.Get("Lambda-Runtime-Invoked-Function-Arn"), "DeadlineMS": deadline,
		"Name": os.Getenv("AWS_LAMBDA_FUNCTION_NAME"), "Memory": os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"),
		"Greeting": os.Getenv("GREETING"), "Execution": os.Getenv("AWS_EXECUTION_ENV"), "Home": os.Getenv("HOME"),
	})
	return string(body)
}

func postJSON(address, body string) {
	response, err := http.Post(address, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	_ = response.Body.Close()
}
