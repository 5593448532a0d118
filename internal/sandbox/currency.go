package sandbox

// currencyName is the name of a currency on the payment page, below the amount with its code.
type currencyName struct{ code, english, french string }

// currencyNames has a row for each currency of the country table. Any other appears by its code only.
func currencyNames() []currencyName {
	return []currencyName{
		{"XOF", "West African CFA francs", "francs CFA d’Afrique de l’Ouest"},
		{"USD", "US dollars", "dollars américains"},
		{"XAF", "Central African CFA francs", "francs CFA d’Afrique centrale"},
		{"TND", "Tunisian dinars", "dinars tunisiens"},
	}
}
