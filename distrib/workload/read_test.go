package workload

import (
	"strings"
	"testing"
)

func TestReadLIBSVM(t *testing.T) {
	s, err := ReadLIBSVM(strings.NewReader("1 1:0.5 3:-2 # a comment\n\n3 2:1e-1\n2\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.Len() != 3 || s.Classes != 3 || s.Features != 3 {
		t.Fatalf("%d samples of %d features and %d classes", s.Len(), s.Features, s.Classes)
	}
	index, value := s.at(0)
	if s.label[0] != 0 || s.label[1] != 2 || index[1] != 2 || value[1] != -2 {
		t.Errorf("labels %v, first sample %v %v", s.label, index, value)
	}
	if index, _ := s.at(2); len(index) != 0 {
		t.Errorf("the last sample has entries %v", index)
	}
	test, err := ReadLIBSVM(strings.NewReader("2 2:4"), s)
	if err != nil {
		t.Fatal(err)
	}
	if test.Classes != 3 || test.Features != 3 || test.label[0] != 1 || test.index[0] != 1 {
		t.Errorf("the test set: %+v", test)
	}
	zero, err := ReadLIBSVM(strings.NewReader("0 0:1 53:1\n6 2:1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if zero.Features != 54 || zero.Classes != 7 || zero.label[1] != 6 || zero.index[1] != 53 {
		t.Errorf("from zero: %+v", zero)
	}
}

func TestReadLIBSVMBad(t *testing.T) {
	like, err := ReadLIBSVM(strings.NewReader("1 1:1\n2 2:1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"":             "no samples",
		"# nothing\n":  "no samples",
		"x 1:1":        "line 1: label",
		"1.5 1:1":      "line 1: label",
		"-1 1:1":       "line 1: label",
		"70000 1:1":    "line 1: label",
		"1 1:1\n1 1":   "line 2: \"1\" is no index:value",
		"1 1:":         "is no index:value",
		"1 :1":         "is no index:value",
		"1 -1:1":       "is no index:value",
		"1 1:nan":      "is no index:value",
		"1 1:1e99":     "is no index:value",
		"1 2:1 2:1":    "index 2 comes after 2",
		"1 2:1 1:1":    "index 1 comes after 2",
		"1 99999999:1": "is more than",
		"1 1:" + strings.Repeat("1", 1<<10) + "x": "is no index:value",
	} {
		if _, err := ReadLIBSVM(strings.NewReader(in), nil); err == nil ||
			!strings.Contains(err.Error(), want) || len(err.Error()) > 120 {
			t.Errorf("%.30q: %v, want %q", in, err, want)
		}
	}
	for _, in := range []string{"0 1:1", "1 0:1", "3 1:1", "1 3:1"} {
		if _, err := ReadLIBSVM(strings.NewReader(in), like); err == nil {
			t.Errorf("%q as a test set: no error", in)
		}
	}
}

const market3 = "%%MatrixMarket matrix coordinate real general\n% films\n3 4 3\n"

func TestReadMatrixMarket(t *testing.T) {
	r, err := ReadMatrixMarket(strings.NewReader(market3 + "3 1 5\n1 4 2.5\n1 2 -1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Rows != 3 || r.Cols != 4 || r.Len() != 3 {
		t.Fatalf("%d elements of %d x %d", r.Len(), r.Rows, r.Cols)
	}
	if r.row[0] != 0 || r.col[0] != 1 || r.value[0] != -1 || r.row[2] != 2 || r.value[2] != 5 {
		t.Errorf("%v %v %v", r.row, r.col, r.value)
	}
}

func TestReadMatrixMarketBad(t *testing.T) {
	for in, want := range map[string]string{
		"":                                     "no matrix",
		"1 2 3\n":                              "line 1: want %%MatrixMarket",
		market3:                                "0 elements, and 3 were announced",
		market3[:46]:                           "no matrix",
		market3 + "1 1":                        "line 4: 2 numbers, want 3",
		market3 + "0 1 1":                      "element 0, 1 of a matrix of 3 x 4",
		market3 + "1 5 1":                      "element 1, 5 of a matrix",
		market3 + "1 a 1":                      "is no element",
		market3 + "1 1 inf":                    "is no element",
		market3 + "1 1 1\n1 1 1\n2 2 2":        "comes twice",
		market3 + "1 1 1\n1 2 1\n2 2 2\n3 3 3": "more than the 3 elements",
		strings.Replace(market3, "3 4 3", "3 4 0", 1):            "is no size",
		strings.Replace(market3, "3 4 3", "3 4 999999999999", 1): "is no size",
		strings.Replace(market3, "3 4 3", "-3 4 3", 1):           "is no size",
		strings.Replace(market3, "real", "complex", 1):           "want coordinate real general",
		strings.Replace(market3, "general", "symmetric", 1):      "want coordinate real general",
	} {
		if _, err := ReadMatrixMarket(strings.NewReader(in)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}
