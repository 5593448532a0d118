package operatorstub

import (
	"bytes"
	"html/template"
)

// Page is a payment page for stubs with a hosted page. It works without scripts and posts to its own address the fields
// msisdn and action, which is confirm, cancel or close; with Code also the field code.
type Page struct {
	Title, Amount, Currency, OrderID string
	// Notice is a text above the form.
	Notice string
	// Code adds the field of a one-time code.
	Code bool
	// Done leaves the form out.
	Done bool
}

const pageText = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title></head><body>
<h1>{{.Title}}</h1>
<p>{{.OrderID}}: {{.Amount}} {{.Currency}}</p>
{{with .Notice}}<p role="status">{{.}}</p>{{end}}
{{if not .Done}}<form method="post">
<label>Phone number <input name="msisdn" inputmode="tel" autocomplete="tel"></label>
{{if .Code}}<label>Code <input name="code" inputmode="numeric" autocomplete="one-time-code"></label>
{{end}}<button name="action" value="confirm">Confirm</button>
<button name="action" value="cancel">Cancel</button>
<button name="action" value="close">Close</button>
</form>{{end}}
</body></html>
`

// Render makes the page's response. It escapes every field.
func (p Page) Render(status int) Response {
	var body bytes.Buffer
	if err := template.Must(template.New("page").Parse(pageText)).Execute(&body, p); err != nil {
		panic("operatorstub: " + err.Error())
	}
	return Response{Status: status, Type: htmlType, Body: body.Bytes()}
}
