package profile

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzQuery: a query that is read has a condition for each of its terms, and ranges that are
// not empty; of any other the error is one line.
func FuzzQuery(f *testing.F) {
	for _, text := range []string{"value=enc/*,part=3-5", "op=copy, step=7-", "time=1.5-3",
		"time=1.2.3", "part=5-3", "step=-1", "what=\n", "value=\u2028,value=a", "time=1e9",
		"time=9223372036854.775807", "time=9223372036855", "part=99999999999", "=", ",", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := ParseQuery(text)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q", err)
			}
			return
		}
		conditions := 0
		for _, given := range []bool{q.value != "", q.op != "", q.part.given, q.step.given,
			q.time.given} {
			if given {
				conditions++
			}
		}
		if conditions != 1+strings.Count(text, ",") {
			t.Errorf("%q has %d conditions", text, conditions)
		}
		if q.part.from < 0 || q.part.to < q.part.from || q.step.from < 0 ||
			q.step.to < q.step.from || q.time.from < 0 || q.time.to < q.time.from {
			t.Errorf("%q is %+v", text, q)
		}
	})
}

// FuzzMatch: a pattern is a regular expression in other words, of characters and not of bytes.
func FuzzMatch(f *testing.F) {
	f.Add("enc/*/w?", "enc/0/w1")
	f.Add("?", "é")
	f.Add("*é?", "aéé")
	f.Add("*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaa")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if !utf8.ValidString(pattern) || !utf8.ValidString(text) {
			return
		}
		like := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
		re, err := regexp.Compile("(?s)^" + like + "$")
		if err != nil {
			return // more than regular expressions may have
		}
		if got := match(pattern, text); got != re.MatchString(text) {
			t.Errorf("%q matches %q: %v", pattern, text, got)
		}
	})
}
