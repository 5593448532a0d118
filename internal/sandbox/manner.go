package sandbox

import (
	"net/http"
	"strings"
)

// manner is how one call is answered.
type manner struct {
	// applies is true where the call takes effect all the same.
	applies bool
	// later applies only when the slow answer's time has passed.
	later bool
	// spoilt is what is answered instead of the true answer; nil gives the true one.
	spoilt *answer
	// refuses is the message id of a refusal that is final and kept; "" for none.
	refuses string
}

// mannerNames are the words of a script, in the order of the documentation.
func mannerNames() []string {
	return []string{"ok", "slow", "cut", "garbage", "html", "empty", "lost", "503", "down", "500", "redirect", "400",
		"401", "409", "429", "POL0001", "POL0253", "POL1000", "SVC0270"}
}

// mannerOf reads a word. A spoilt answer may be followed by "-applied" or "-unapplied" to say what else becomes of the
// call; without it a call with a spoilt 2xx and a cut one are applied, any other is not.
func mannerOf(word string) (manner, bool) {
	base, applied := strings.CutSuffix(word, "-applied")
	base, unapplied := strings.CutSuffix(base, "-unapplied")
	m, ok := plainManner(base)
	if (applied || unapplied) && m.spoilt == nil {
		return manner{}, false
	}
	m.applies = m.applies && !unapplied || applied
	return m, ok
}

func plainManner(word string) (manner, bool) {
	switch word {
	case "ok":
		return manner{applies: true}, true
	case "slow":
		return manner{applies: true, later: true}, true
	case "cut":
		return manner{applies: true, spoilt: &answer{Cut: true}}, true
	case "lost":
		return manner{spoilt: &answer{Cut: true}}, true
	case "POL0001", "POL0253", "POL1000", "SVC0270":
		return manner{applies: true, refuses: word}, true
	}
	spoilt, applies := spoiltAnswer(word)
	return manner{applies: applies, spoilt: spoilt}, spoilt != nil
}

// spoiltAnswer is what a word answers instead of the truth, and whether the call is applied nevertheless.
func spoiltAnswer(word string) (*answer, bool) {
	page := func(status int, text string) *answer {
		return &answer{Status: status, Type: "text/html; charset=utf-8", Body: []byte("<!doctype html><html><body>" + text + "</body></html>\n")}
	}
	fault := func(status int, id string, variables ...string) *answer {
		a := refusal(status, id, variables)
		return &a
	}
	switch word {
	case "garbage":
		return &answer{Status: http.StatusOK, Type: jsonType, Body: []byte("<html>OK{{\x00 not what you want")}, true
	case "html":
		return page(http.StatusOK, "It works!"), true
	case "empty":
		return &answer{Status: http.StatusCreated, Type: jsonType, Body: []byte("{}")}, true
	case "503", "down":
		a := fault(http.StatusServiceUnavailable, "SVC0001", "PDK_SMSW_0013")
		a.RetryAfter = "5"
		return a, false
	case "500":
		return page(http.StatusInternalServerError, "Internal Server Error"), false
	case "redirect":
		a := page(http.StatusFound, "Found")
		a.Location = "/elsewhere"
		return a, false
	case "400":
		return fault(http.StatusBadRequest, "SVC0002", "scripted"), false
	case "401":
		return fault(http.StatusUnauthorized, "900901"), false
	case "409":
		a := inFlight("scripted", "scripted")
		return &a, false
	case "429":
		a := fault(http.StatusTooManyRequests, "900800")
		a.RetryAfter = "1"
		return a, false
	}
	return nil, false
}
