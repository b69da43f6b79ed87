package workload

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode"
)

// oneLine reports an error that is not one line that can be printed.
func oneLine(t *testing.T, err error) {
	t.Helper()
	if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%q", err)
	}
}

// libsvmText is what [ReadLIBSVM] reads as the same.
func libsvmText(s *Samples) string {
	var b strings.Builder
	for i := range s.Len() {
		fmt.Fprintf(&b, "%d", s.label[i]+s.first[0])
		index, value := s.at(i)
		for k := range index {
			fmt.Fprintf(&b, " %d:%v", index[k]+s.first[1], value[k])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// FuzzLIBSVM: samples that are read are within the sizes that they have, no more than the text
// has room for, and written down they read as the same.
func FuzzLIBSVM(f *testing.F) {
	for _, text := range []string{"1 1:0.5 3:-2 # a comment\n\n3 2:1e-1\n2\n", "0 0:1 53:1\n6 2:1",
		"1\n2\n", "65535 67108864:1", "1 67108865:1", "-0 1:1", "1e3 +1:1", "1 2:1 1:1", "1 1:1e39",
		"1\x1b[31m 1:1", "\xff", "1 1:\u2028", "0.5 1:1", "NaN"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ReadLIBSVM(bytes.NewReader(text), nil)
		if err != nil {
			oneLine(t, err)
			return
		}
		if s.Len() > len(text) || len(s.index) > len(text)/3 || s.Features < 0 ||
			s.Features > maxFeatures+1 || s.Classes < 1 || s.Classes > maxClasses {
			t.Errorf("%d samples, %d numbers, %d features, %d classes of %d bytes", s.Len(),
				len(s.index), s.Features, s.Classes, len(text))
		}
		for i, label := range s.label {
			index, value := s.at(i)
			if label < 0 || int(label) >= s.Classes {
				t.Errorf("label %d of %d", label, s.Classes)
			}
			for k := range index {
				if index[k] < 0 || int(index[k]) >= s.Features || math.IsNaN(float64(value[k])) {
					t.Errorf("%d:%v of %d", index[k], value[k], s.Features)
				}
			}
		}
		again, err := ReadLIBSVM(strings.NewReader(libsvmText(s)), nil)
		if err != nil || !reflect.DeepEqual(s, again) {
			t.Errorf("%+v reads as %+v, %v", s, again, err)
		}
		weights := int64(s.Classes) * int64(s.Features)
		task := MLR{Train: s, Epochs: 1, Clocks: 1, Rate: 1, Decay: 1}
		if err := task.Check(); (err == nil) != (weights <= maxWeights) {
			t.Errorf("%d weights: %v", weights, err)
		}
	})
}

// FuzzMatrixMarket: the same of ratings.
func FuzzMatrixMarket(f *testing.F) {
	const head = "%%MatrixMarket matrix coordinate real general\n"
	for _, text := range []string{head + "2 3 2\n1 1 0.5\n2 3 -1\n",
		head + "% a remark\n1 1 1\n1 1 1",
		head + "2 2 2\n1 1 1\n1 1 1\n", head + "67108864 67108864 268435456\n1 1 1\n",
		head + "1 1 1\n1 1 nan\n", head + "1 1 1\n0 1 1\n", head + "9999999999999999999 1 1\n",
		"%%MatrixMarket matrix \x1b[31m real general\n", "%%MatrixMarket matrix array real x\n",
		head + "1 1 1 1\n", head, ""} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ReadMatrixMarket(bytes.NewReader(text))
		if err != nil {
			oneLine(t, err)
			return
		}
		if r.Len() < 1 || r.Len() > len(text)/5 {
			t.Errorf("%d elements of %d bytes", r.Len(), len(text))
		}
		again := head + fmt.Sprintln(r.Rows, r.Cols, r.Len())
		for i := range r.Len() {
			if int(r.row[i]) >= r.Rows || int(r.col[i]) >= r.Cols || r.row[i] < 0 || r.col[i] < 0 {
				t.Errorf("element %d, %d of %d x %d", r.row[i], r.col[i], r.Rows, r.Cols)
			}
			again += fmt.Sprintln(r.row[i]+1, r.col[i]+1, r.value[i])
		}
		if same, err := ReadMatrixMarket(strings.NewReader(again)); err != nil ||
			!reflect.DeepEqual(r, same) {
			t.Errorf("%+v reads as %+v, %v", r, same, err)
		}
	})
}

// FuzzMovieLens: ratings that are read are within the sizes that they have, sorted, and no more
// than the text has room for.
func FuzzMovieLens(f *testing.F) {
	for _, text := range []string{"1::2::3::4\n2::2::0.5::4\n", "1::2::5::4\r\n", "1::2::3",
		"1::2::3::4\n1::2::3::4", "\xff", "2147483647::1::1::1", "1::2::1e0::4", "+1::2::1::4"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ReadMovieLens(bytes.NewReader(text), "ratings.dat")
		if err != nil {
			oneLine(t, err)
			return
		}
		if r.Len() > len(text)/9 || r.Rows > r.Len() || r.Cols > r.Len() {
			t.Errorf("%d ratings, %d by %d, of %d bytes", r.Len(), r.Rows, r.Cols, len(text))
		}
		for i, row := range r.row {
			if row < 0 || int(row) >= r.Rows || r.col[i] < 0 || int(r.col[i]) >= r.Cols ||
				i > 0 && (row < r.row[i-1] || row == r.row[i-1] && r.col[i] <= r.col[i-1]) {
				t.Errorf("rating %d is at %d, %d of %d by %d", i, row, r.col[i], r.Rows, r.Cols)
			}
		}
	})
}
