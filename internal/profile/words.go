package profile

import (
	"fmt"
	"unicode/utf8"

	"github.com/docker/go-units"
)

// size prints a number of bytes with a binary unit.
func size(bytes int64) string { return units.BytesSize(float64(bytes)) }

// brief prints a number of bytes in seven columns.
func brief(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	x, i := float64(bytes), 0
	for ; x >= 1024 && i < len(units)-1; i++ {
		x /= 1024
	}
	return figure(x) + units[i]
}

// grouped prints a number in groups of three digits.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// counted prints a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(int64(n)) + " " + noun + "s"
}

// duration prints milliseconds with three figures.
func duration(ms float64) string { return scaleOf(ms).say(ms) }

// figure prints a number with three figures, whole from 100.
func figure(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// percent prints a part of one.
func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// short is a name in so many columns at most: where it is longer, its middle is
// left out.
func short(name string, columns int) string {
	if utf8.RuneCountInString(name) <= columns {
		return name
	}
	runes := []rune(name)
	tail := (columns - 1) * 2 / 3
	head := columns - 1 - tail
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}
