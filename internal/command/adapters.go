package command

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gomem/gomem/nn"
)

// scopes are those of parameters, with commas between.
type scopes string

// UnmarshalText reads some.
func (s *scopes) UnmarshalText(text []byte) error {
	for scope := range strings.SplitSeq(string(text), ",") {
		if strings.Trim(scope, "/ ") == "" {
			return fmt.Errorf("%.60q: want parameters, or scopes of them, such as h/0,wte",
				text)
		}
	}
	*s = scopes(text)
	return nil
}

// list is one after the other.
func (s scopes) list() []string {
	if s == "" {
		return nil
	}
	return strings.Split(string(s), ",")
}

// lora is how layers are adapted: rank=16,alpha=32,dropout=0.05,targets=q_proj+v_proj.
type lora string

// UnmarshalText reads it.
func (l *lora) UnmarshalText(text []byte) error {
	_, err := parseLora(string(text))
	*l = lora(text)
	return err
}

// adapters are what it says; nil if that is nothing.
func (l lora) adapters() *nn.Adapters {
	if l == "" {
		return nil
	}
	a, _ := parseLora(string(l)) // which is checked
	return &a
}

func parseLora(text string) (a nn.Adapters, err error) {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		if seen[key] {
			return a, fmt.Errorf("%.60q has two of %.60q", text, key)
		}
		seen[key] = true
		switch key {
		case "rank":
			a.Rank, err = strconv.Atoi(value)
		case "alpha":
			err = number32(value, &a.Alpha)
		case "dropout":
			err = number32(value, &a.Dropout)
		case "targets":
			a.Targets = strings.Split(value, "+")
		default:
			return a, fmt.Errorf("%.60q: want rank=N, and alpha=X, dropout=P and "+
				"targets=NAME+NAME as wanted, with commas between", part)
		}
		if err != nil {
			return a, fmt.Errorf("%.60q: want a number", part)
		}
	}
	if !seen["rank"] {
		return a, fmt.Errorf("%.60q has no rank: want rank=16, say", text)
	}
	return a, a.Validate()
}

// number32 reads a number.
func number32(text string, to *float32) error {
	x, err := strconv.ParseFloat(text, 32)
	*to = float32(x)
	return err
}
