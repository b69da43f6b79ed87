package mesh

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzMatch: a pattern is a regular expression in other words, however many * it has.
func FuzzMatch(f *testing.F) {
	f.Add("*/ff/w*", "enc/0/ff/w0")
	f.Add("a*a", "a")
	f.Add("*", "")
	f.Add(strings.Repeat("*a", 60)+"*b", strings.Repeat("a", 200))
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if !utf8.ValidString(pattern) || !utf8.ValidString(name) {
			return
		}
		like := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
		re, err := regexp.Compile("(?s)^" + like + "$")
		if err != nil {
			return // more than regular expressions may have
		}
		if got := match(pattern, name); got != re.MatchString(name) {
			t.Errorf("%q matches %q: %v", pattern, name, got)
		}
	})
}
