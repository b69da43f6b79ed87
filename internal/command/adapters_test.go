package command

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gomem/gomem/nn"
)

// TestLora: what --lora says, and what it cannot.
func TestLora(t *testing.T) {
	for text, want := range map[string]nn.Adapters{
		"rank=4": {Rank: 4},
		"targets=a+b/c,rank=1,alpha=2,dropout=0.5": {Rank: 1, Alpha: 2, Dropout: 0.5,
			Targets: []string{"a", "b/c"}},
	} {
		var l lora
		if err := l.UnmarshalText([]byte(text)); err != nil ||
			!reflect.DeepEqual(*l.adapters(), want) {
			t.Errorf("%s: %v, %+v, want %+v", text, err, l.adapters(), want)
		}
	}
	for text, want := range map[string]string{
		"": "want rank=N", "alpha=1": "has no rank", "rank=0": "rank 0", "rank=x": "want a number",
		"rank=1,rank=2": "two of", "rank=1,alpha=-1": "alpha -1", "rank=1,alpha=Inf": "alpha +Inf",
		"rank=1,alpha=NaN": "alpha NaN", "rank=1,dropout=1": "dropout 1",
		"rank=999999":     "rank 999999",
		"rank=1,targets=": "without a name", "rank=1,targets=a++b": "without a name",
		"rank=1,beta=2": `"beta=2": want rank=N`,
	} {
		var l lora
		if err := l.UnmarshalText([]byte(text)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if (lora("")).adapters() != nil {
		t.Error("adapters of nothing")
	}
	for _, text := range []string{"", ",", "a,", "/"} {
		var s scopes
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("scopes %q", text)
		}
	}
}
