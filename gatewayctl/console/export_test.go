package console

import (
	"net/url"
	"slices"
	"time"

	classes "mobilegateway/gatewayctl/reconcile/result"
)

// TextKeys are the keys that the tables of pages use.
func TextKeys() (keys []string) {
	all, _ := loadTexts()
	for key := range all {
		keys = append(keys, key)
	}
	add := func(l listing) {
		keys = append(keys, "h."+l.title, "none."+l.title)
		for _, c := range l.columns {
			keys = append(keys, "c."+c.Field)
		}
	}
	for _, p := range pages {
		keys = append(keys, "title."+p.name)
	}
	for _, l := range []listing{
		attentionList, waitingList, circuitList, healthList, merchantList, accountList, serviceList, keyList("tokens"),
		keyList("callbacks"), keyList("webhooks"), verifyList, auditList, sandboxOrders, sandboxScripts,
		totalList, classList, differenceList, statementList, owedList,
	} {
		add(l)
	}
	for _, columns := range [][]column{
		transactionColumns, endpointList, notificationColumns, merchantFacts, credentialColumns, transactionFacts,
		callColumns, attemptColumns, reconciliationFacts, settlementFacts,
	} {
		for _, c := range columns {
			keys = append(keys, "c."+c.Field)
		}
	}
	for _, name := range slices.Concat(searchFilters) {
		keys = append(keys, "filter."+name)
	}
	for _, name := range sandboxDigits {
		keys = append(keys, "digits."+name)
	}
	for _, name := range scriptWords {
		keys = append(keys, "script."+name)
	}
	for _, name := range slices.Concat(waitingAges, groupFields) {
		keys = append(keys, "c."+name)
	}
	keys = append(keys, "reconcile.required", "reconcile.path")
	for _, name := range classes.Classes() {
		keys = append(keys, "v."+string(name))
	}
	for _, f := range commandForms(&query{form: url.Values{}, console: &Console{Config: Config{Now: time.Now}}}) {
		keys = append(keys, "h."+f.Name, "about."+f.Name, "run."+f.Name)
		for _, flag := range f.Fields {
			keys = append(keys, "filter."+flag.Name)
		}
	}
	keys = append(keys, laneNames...)
	for _, nodes := range stateNodes {
		for _, n := range nodes {
			keys = append(keys, "means."+n.Name)
		}
	}
	return keys
}

// Text is a text in a language.
func Text(lang, key string) (text string, known bool) {
	all, _ := loadTexts()
	found, known := all[key]
	return found[slices.Index(languages, lang)], known
}

// Detail is a detail of the tool in a language, and its own language.
func Detail(lang, english string) (text, textLang string) {
	all, _ := loadTexts()
	p := printer{lang, all}
	return p.Detail(english), p.DetailLang(english)
}
