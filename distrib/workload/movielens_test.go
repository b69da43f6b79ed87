package workload

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestReadMovieLens: the three forms of the same ratings read as the same matrix, of the users and
// films that there are.
func TestReadMovieLens(t *testing.T) {
	want := &Ratings{Rows: 2, Cols: 3, row: []int32{0, 0, 1}, col: []int32{0, 2, 1},
		value: []float32{5, 0.5, 3}, RowNames: []int32{7, 900}, ColNames: []int32{20, 122, 300}}
	for file, text := range map[string]string{
		"ratings.dat": "7::300::0.5::838985046\n900::122::3::838983525\n7::20::5::0\n",
		"ratings.csv": "userId,movieId,rating,timestamp\r\n7,300,0.5,838985046\r\n" +
			"900,122,3.0,838983525\r\n7,20,5.0,0",
		"u.data": "7\t300\t0.5\t838985046\n900\t122\t3\t838983525\n7\t20\t5\t0\n",
	} {
		have, err := ReadMovieLens(strings.NewReader(text), file)
		if err != nil || !reflect.DeepEqual(have, want) {
			t.Errorf("%s: %+v, %v", file, have, err)
		}
	}
}

// TestBadMovieLens: what is no rating is refused by its line.
func TestBadMovieLens(t *testing.T) {
	const good = "1::2::3::4\n"
	for text, want := range map[string]string{
		"":                                       "no ratings",
		good + "\n":                              `line 2: "" is no rating`,
		good + "1::3::3\n":                       "line 2: ",
		good + "1::3::3::4::5\n":                 "line 2: ",
		good + "1,3,3,4\n":                       `with "::" between them`,
		"0::3::3::4":                             "line 1: ",
		"1::-3::3::4":                            "whole numbers of a user",
		"1::3000000000::3::4":                    "line 1: ",
		"1.5::3::3::4":                           "line 1: ",
		" 1::3::3::4":                            "line 1: ",
		"1::3::3::x":                             "a time in seconds",
		"1::3::0::4":                             `"0" stars: want 0.5 to 5 by halves`,
		"1::3::5.5::4":                           "by halves",
		"1::3::2.25::4":                          "by halves",
		"1::3::NaN::4":                           "by halves",
		"1::3::Inf::4":                           "by halves",
		good + "2::2::3::4\n" + good:             "line 3: its user has rated its film before",
		good + "2::2::3::4\n2::2::3::4\n" + good: "line 3: its user has rated its film before",
		good + good + "2::2::3::4\n":             "line 2: its user has rated its film before",
		"userId,movieId,rating,timestamp":        "line 1: ",
	} {
		if _, err := ReadMovieLens(strings.NewReader(text), "ratings.dat"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"1,2,3,4\n":         `line 1: "1,2,3,4", want userId,movieId,rating,timestamp`,
		movieLenses[1].head: "no ratings",
		movieLenses[1].head + "\n1,2,3,4\n1,2,3,4": "line 3: its user has rated its film before",
	} {
		if _, err := ReadMovieLens(strings.NewReader(text), "ratings.csv"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := ReadMovieLens(strings.NewReader(good), "u.item"); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("%q", MovieLensFiles())) {
		t.Error(err)
	}
}
