package orion

import (
	"slices"
	"strings"
	"testing"
)

// TestBadLoops: what makes no sense is refused, with what would.
func TestBadLoops(t *testing.T) {
	good := `{"space": ["i 8", "j 9"], "arrays": [{"name": "A", "shape": [8, 9]}],
		"body": ["read A[i, j]", "write A[i-1, 0]"]}`
	parse(t, good)
	for _, c := range []struct{ old, new, want string }{
		{`"i 8"`, `"i"`, `"i" is no index and its size, as in i 100`},
		{`"i 8"`, `"i 8.5"`, "no index and its size"},
		{`"i 8"`, `"i 0"`, "dimension i has size 0: want 1 to"},
		{`"i 8"`, `"i 9223372036854775807"`, "dimension i has size"},
		{`"j 9"]`, `"j 9", "A 8"]`, "there are two of the name A"},
		{`"j 9"]`, `"j 9", "é 8"]`, "is no name"},
		{`["i 8", "j 9"]`, `[]`, `"i": the loop has no dimension "i"`},
		{`"j 9"]`, `"a 1", "b 1", "c 1", "d 1", "e 1", "j 9"]`, "a loop of 7 dimensions"},
		{`[8, 9]`, `[8]`, "A[i, j] has 2 subscripts, and array A 1 dimensions"},
		{`[8, 9]`, `[]`, "array A of 0 dimensions"},
		{`[8, 9]`, `[8, -9]`, "a dimension of array A has size -9"},
		{`[8, 9]`, `[1099511627776, 1099511627776]`, "array A has more than"},
		{`[8, 9]`, `[8, 9], "bytes": 0`, "an element of array A has 0 bytes"},
		{`[8, 9]`, `[8, 9], "form": 0`, `unknown field "form"`},
		{`"A", "shape"`, `"", "shape"`, "the loop has no array"},
		{`"read A[i, j]", "write A[i-1, 0]"`, ``, "0 references to arrays"},
		{`read A[i, j]`, `reads A[i, j]`, "want read, write or buffer"},
		{`read A[i, j]`, `read A`, "subscripts in brackets"},
		{`read A[i, j]`, `read A[i, j`, "subscripts in brackets"},
		{`read A[i, j]`, `read B[i, j]`, `the loop has no array "B"`},
		{`read A[i, j]`, `read A[i, k]`, `subscript "k": the loop has no dimension "k": ` +
			`want i, j, a number, : or ?`},
		{`read A[i, j]`, `read A[i, 2*j]`, `the loop has no dimension "2*j"`},
		{`read A[i, j]`, `read A[i, j+x]`, "want an index and a number, as in i-1"},
		{`read A[i, j]`, `read A[i, 9]`, "A[i, 9]: subscript 2, 9, is never within 0 to 8"},
		{`read A[i, j]`, `read A[i-8, j]`, "subscript 1, i-8, is never within 0 to 7"},
		{`read A[i, j]`, `read A[i-9000000000000, j]`, "is too far away"},
		{`{"space"`, `["space"`, "no loop"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", text, err, c.want)
		}
	}
}

// TestTexts: a loop's text has what it was read of, and coordinates have names.
func TestTexts(t *testing.T) {
	l := parse(t, `{"space": ["i 8", "j 9"], "arrays": [{"name": "A", "shape": [8, 9, 7]}],
		"body": ["read A[ i , j+1,:]", "write A[i - 1, 0, ?]", "buffer A[0,0,0]"]}`)
	const want = `for i below 8
for j below 9
  read A[i, j+1, :]
  write A[i-1, 0, ?]
  buffer A[0, 0, 0]
`
	if l.String() != want {
		t.Errorf("%s", l)
	}
	var sums []string
	for _, row := range [][]int64{{0, 0}, {1, 0}, {2, 1}, {-1, 3}, {1, -2}} {
		sums = append(sums, l.Sum(row))
	}
	if !slices.Equal(sums, []string{"", "i", "2*i + j", "-i + 3*j", "i - 2*j"}) {
		t.Errorf("%q", sums)
	}
}
