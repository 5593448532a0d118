package kit

import (
	"bytes"
	"cmp"
	"html/template"
	"net/http"
	"strings"
	"time"
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
		panic("kit: " + err.Error())
	}
	return Response{Status: status, Type: htmlType, Body: body.Bytes()}
}

const (
	shortPageLife        = 3 * time.Second // quirk Hosted.Short
	minDigits, maxDigits = 8, 15           // of a payer's number
)

// Hosted describes the pages on which payers confirm transactions. The kit serves them as the operations page and
// confirm. The number on the page selects the outcome, and its faults are those of the button.
type Hosted struct {
	// Path is that of a page, with {id} for Transaction.PageID.
	Path string
	// Life is how long a page takes payments. The quirk Short makes it three seconds.
	Life  time.Duration
	Short string
	// Open is the status of a transaction whose page takes payments, and Expired the status of one whose time is over.
	Open, Expired string
	// Page makes the page of a transaction. The kit adds the currency, and the amount if it is empty.
	Page func(t *Transaction) Page
	// Cancel and Confirm serve these buttons of a page that takes payments. Call.MSISDN is the number.
	Cancel, Confirm func(t *Transaction, c *Call) Response
	// Late is called when the payer confirms on a page that takes no payment; nil does nothing.
	Late func(t *Transaction)
}

// operations are those of the pages.
func (p *Platform) pageOperations() []Operation {
	path := p.spec.Hosted.Path
	identify := func(c *Call) {
		if c.Form("action") == "confirm" {
			c.MSISDN = ReadDigits(c.Form("msisdn"), minDigits, maxDigits)
		}
	}
	return []Operation{
		{Pattern: "GET " + path, Name: "page", Key: "page:id", Open: true, Serve: p.servePage},
		{Pattern: "POST " + path, Name: "confirm", Key: "page:id", Identify: identify, Open: true,
			Serve: p.serveButton},
	}
}

// FindPage returns the transaction of a page, or nil.
func (p *Platform) FindPage(id string) *Transaction {
	return p.First(func(t *Transaction) bool { return t.PageID == id })
}

// expire ends a transaction whose payer did not confirm in time.
func (p *Platform) expire(t *Transaction) {
	h := p.spec.Hosted
	if h != nil && t.Status == h.Open && t.MSISDN == "" && !p.Now().Before(t.EndsAt) {
		t.Status = h.Expired
	}
}

// pageEnd is when the page of a new transaction ends.
func (p *Platform) pageEnd() time.Time {
	if p.Quirk(p.spec.Hosted.Short) {
		return p.Now().Add(shortPageLife)
	}
	return p.Now().Add(p.spec.Hosted.Life)
}

// ShowPage makes the page of a transaction with a notice.
func (p *Platform) ShowPage(t *Transaction, status int, notice string) Response {
	page := p.spec.Hosted.Page(t)
	page.Amount, page.Currency = cmp.Or(page.Amount, t.Amount), t.Currency
	if page.Notice = notice; !p.takesPayment(t) {
		page.Done, page.Notice = true, "This payment is "+strings.ToLower(t.Status)+"."
		if t.Cancelled {
			page.Notice = "This payment is cancelled."
		}
	}
	return page.Render(status)
}

func (p *Platform) takesPayment(t *Transaction) bool {
	return t.Status == p.spec.Hosted.Open && t.MSISDN == "" && !t.Cancelled
}

func (p *Platform) servePage(c *Call) Response {
	t := p.FindPage(c.Request.PathValue("id"))
	if t == nil || t.PageQuery != "" && t.PageQuery != c.Request.URL.RawQuery {
		return HTML(http.StatusNotFound, "This payment link is wrong.")
	}
	return p.ShowPage(t, http.StatusOK, "")
}

// serveButton serves the buttons of a page.
func (p *Platform) serveButton(c *Call) Response {
	page := p.servePage(c)
	if page.Status != http.StatusOK {
		return page
	}
	t, action := p.FindPage(c.Request.PathValue("id")), c.Form("action")
	switch {
	case !p.takesPayment(t):
		if action == "confirm" && p.spec.Hosted.Late != nil {
			p.spec.Hosted.Late(t)
		}
		return page
	case action == "cancel":
		t.Cancelled = true
		return p.spec.Hosted.Cancel(t, c)
	case action == "close":
		return HTML(http.StatusOK, "You may close this window.")
	case c.MSISDN == "":
		return p.ShowPage(t, http.StatusBadRequest, "Type a phone number with its country code.")
	}
	return p.spec.Hosted.Confirm(t, c)
}
