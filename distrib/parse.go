package distrib

import (
	"fmt"
	"strconv"
	"strings"
)

// form is how a policy is written: its name and its numbers, of which some may be left out.
type form[T any] struct {
	name, numbers string // "topk", "FRACTION"
	least, most   int    // how many numbers
	make          func(x []float64) (T, error)
}

// filterForms are the filters that have a name.
func filterForms() []form[Filter] {
	rounding := func(as DType) func([]float64) (Filter, error) {
		return func([]float64) (Filter, error) { return Rounding{as}, nil }
	}
	return []form[Filter]{
		{"dvf", ":DELTA[:DELTA OF SLOW LINKS[:MBIT/S OF FAST ONES]]", 1, 3,
			func(x []float64) (Filter, error) {
				f := DVF{Low: float32(x[0]), Up: float32(x[0])}
				if len(x) > 1 {
					f.Up = float32(x[1])
				}
				if len(x) > 2 {
					f.Fast = 1e6 * x[2]
				}
				return f, positive(x...)
			}},
		{"topk", ":FRACTION", 1, 1, func(x []float64) (Filter, error) {
			if !(x[0] > 0 && x[0] <= 1) {
				return nil, fmt.Errorf("%v is no fraction", x[0])
			}
			return TopK{Frac: x[0]}, nil
		}},
		{"powersgd", "[:RANK]", 0, 1, func(x []float64) (Filter, error) {
			n, err := whole(x)
			return &PowerSGD{Rank: n}, err
		}},
		{"svs", "[:PAIRS]", 0, 1, func(x []float64) (Filter, error) {
			n, err := whole(x)
			return &SVSelect{C: n}, err
		}},
		{"fp16", "", 0, 0, rounding(F16)},
		{"bf16", "", 0, 0, rounding(BF16)},
	}
}

// ParseFilter is a filter as text, "dvf:1e-3", or several one after the other,
// "topk:0.01,fp16". The error lists what there is.
func ParseFilter(text string) (Filter, error) {
	var chain Chain
	for part := range strings.SplitSeq(text, ",") {
		f, err := parseForm("filter", part, filterForms())
		if err != nil {
			return nil, err
		}
		chain = append(chain, f)
	}
	if len(chain) == 1 {
		return chain[0], nil
	}
	return chain, nil
}

// ruleForms are the rules that have a name.
func ruleForms() []form[Rule] {
	return []form[Rule]{
		{"add", "", 0, 0, func([]float64) (Rule, error) { return &Additive{}, nil }},
		{"momentum", ":MU", 1, 1, func(x []float64) (Rule, error) {
			if !(x[0] >= 0 && float32(x[0]) < 1) {
				return nil, fmt.Errorf("momentum %v is not in [0, 1)", x[0])
			}
			return &Momentum{Mu: float32(x[0])}, nil
		}},
		{"adarevision", ":STEP", 1, 1, func(x []float64) (Rule, error) {
			return &AdaRevision{Alpha: float32(x[0])}, positive(x[0])
		}},
		{"adadelay", "[:C[:L]]", 0, 2, func(x []float64) (Rule, error) {
			a := &AdaDelay{}
			for i, f := range []*float32{&a.C, &a.L}[:len(x)] {
				*f = float32(x[i])
			}
			return a, positive(x...)
		}},
		{"adam", "[:STEP]", 0, 1, func(x []float64) (Rule, error) {
			if len(x) == 0 {
				return &Adam{}, nil
			}
			return &Adam{LR: float32(x[0])}, positive(x[0])
		}},
	}
}

// ParseRule is a rule as text, "momentum:0.9". The error lists what there is.
func ParseRule(text string) (Rule, error) { return parseForm("rule", text, ruleForms()) }

func parseForm[T any](kind, text string, forms []form[T]) (none T, err error) {
	fields := strings.Split(strings.TrimSpace(text), ":")
	var names []string
	for _, f := range forms {
		names = append(names, f.name+f.numbers)
		if f.name != fields[0] {
			continue
		}
		x, err := numbersOf(fields[1:])
		if err != nil || len(x) < f.least || len(x) > f.most {
			return none, fmt.Errorf("%s %.60q is not %s%s", kind, text, f.name, f.numbers)
		}
		made, err := f.make(x)
		if err != nil {
			return none, fmt.Errorf("%s %.60q: %w", kind, text, err)
		}
		return made, nil
	}
	return none, fmt.Errorf("no %s %.60q: there are %s", kind, text, enumerate(names))
}

func numbersOf(fields []string) (x []float64, err error) {
	for _, f := range fields {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return nil, err
		}
		x = append(x, v)
	}
	return x, nil
}

// positive refuses numbers that are not, or have no place in an F32, as one so small that it
// would be 0, which stands for what is usual.
func positive(x ...float64) error {
	for _, v := range x {
		if !(float32(v) > 0 && v <= 1e30) {
			return fmt.Errorf("%v is not a positive number", v)
		}
	}
	return nil
}

// whole is a number of pairs, 0 if none is given.
func whole(x []float64) (int, error) {
	if len(x) == 0 {
		return 0, nil
	}
	n := int(x[0])
	if float64(n) != x[0] || n < 1 || n > 1<<20 {
		return 0, fmt.Errorf("%v is no whole number of at least 1", x[0])
	}
	return n, nil
}
