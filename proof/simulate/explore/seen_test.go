package explore

import "testing"

// An instance has seen, for each call, its results in their order. The order of calls with different names is left out.
func TestSeen(t *testing.T) {
	type sight struct {
		name   string
		digest uint64
	}
	first, second, other := sight{"a", 1}, sight{"a", 2}, sight{"b", 1}
	sumOf := func(inOrder bool, sights ...sight) uint64 {
		s := seen{inOrder: inOrder}
		for _, sight := range sights {
			s.begin(sight.name)
			s.add(sight.name, sight.digest)
		}
		return s.sum
	}
	for name, test := range map[string]struct {
		inOrder, isSame bool
		a, b            []sight
	}{
		"different calls":          {false, true, []sight{first, other}, []sight{other, first}},
		"different calls in order": {true, false, []sight{first, other}, []sight{other, first}},
		"one call twice":           {false, false, []sight{first, second}, []sight{second, first}},
		"one result of two calls":  {false, false, []sight{first}, []sight{other}},
		"a call and its repeat":    {false, false, []sight{first}, []sight{first, first}},
	} {
		if isSame := sumOf(test.inOrder, test.a...) == sumOf(test.inOrder, test.b...); isSame != test.isSame {
			t.Errorf("%s: the same is %v, want %v", name, isSame, test.isSame)
		}
	}
}
