package inbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"slices"
	"sync"
)

// pageStyle is the page's only style sheet; the page's policy allows it by its hash.
const pageStyle = `
body{font-family:system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem;line-height:1.4}
article{border-top:1px solid #888;padding:1rem 0}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f2f2f2;color:#111;padding:.75rem}
.good{color:#0a5c1e}.bad{color:#a3000b;font-weight:bold}`

const pageSource = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Demo merchant: inbox</title><style>` + pageStyle + `</style></head><body>
<h1>Demo merchant: inbox</h1>
<p>{{len .}} received, newest first. As JSON: <a href="/messages">/messages</a>.</p>
{{range .}}<article>
<h2><time datetime="{{.ReceivedAt.Format "2006-01-02T15:04:05.000Z07:00"}}">
{{- .ReceivedAt.Format "2006-01-02 15:04:05.000 UTC"}}</time></h2>
<p>Signature: <span class="{{if eq .SignatureStatus "verified"}}good{{else}}bad{{end}}">{{.SignatureStatus}}</span>.
Path: {{.Path}}{{with index .Headers "webhook-id"}}. Id: {{.}}{{end}}</p>
<pre>{{.Body}}</pre>
</article>
{{else}}<p>Nothing yet.</p>
{{end}}</body></html>
`

// pageTemplate parses the page's template on first use.
var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("inbox").Parse(pageSource))
})

func (i *Inbox) servePage(w http.ResponseWriter, _ *http.Request) {
	messages := i.snapshot()
	slices.Reverse(messages)
	var body bytes.Buffer
	if err := pageTemplate().Execute(&body, messages); err != nil {
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
		return
	}
	hash := sha256.Sum256([]byte(pageStyle))
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+
		base64.StdEncoding.EncodeToString(hash[:])+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	_, _ = w.Write(body.Bytes())
}
