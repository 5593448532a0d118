package sandbox

// currencyName is what the payment page calls a currency, below the amount with its code.
type currencyName struct{ code, english, french string }

// currencyNames has a row for each currency of the country table. Any other shows its code alone.
func currencyNames() []currencyName {
	return []currencyName{
		{"XOF", "West African CFA francs", "francs CFA d’Afrique de l’Ouest"},
		{"USD", "US dollars", "dollars américains"},
		{"XAF", "Central African CFA francs", "francs CFA d’Afrique centrale"},
		{"TND", "Tunisian dinars", "dinars tunisiens"},
	}
}

// currencyNamesIn is the names by code; pick takes one language's.
func currencyNamesIn(pick func(currencyName) string) map[string]string {
	names := map[string]string{}
	for _, row := range currencyNames() {
		names[row.code] = pick(row)
	}
	return names
}
