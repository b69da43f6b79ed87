package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// A movieLens is one of the forms that the MovieLens sets come in: a rating is a line of a user, a
// film, stars and a time.
type movieLens struct{ file, head, between string }

var movieLenses = []movieLens{
	{"ratings.dat", "", "::"},                               // 1M and 10M
	{"ratings.csv", "userId,movieId,rating,timestamp", ","}, // 20M and later
	{"u.data", "", "\t"},                                    // 100K
}

// MovieLensFiles are the names that the ratings of a MovieLens set have.
func MovieLensFiles() (names []string) {
	for _, m := range movieLenses {
		names = append(names, m.file)
	}
	return names
}

// ReadMovieLens reads ratings in the form that files of a name have, one of [MovieLensFiles]: 0.5
// to 5 stars. A row is a user, and a column a film, of those that there are ratings of, in the
// order of their numbers. Each pair comes once.
func ReadMovieLens(in io.Reader, file string) (*Ratings, error) {
	i := slices.IndexFunc(movieLenses, func(m movieLens) bool { return m.file == file })
	if i < 0 {
		return nil, fmt.Errorf("%.60q is no file of ratings: want one of %q", file,
			MovieLensFiles())
	}
	p := &stars{movieLens: movieLenses[i], r: &Ratings{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	number := 0
	for lines.Scan() {
		number++
		if err := p.line(bytes.TrimSuffix(lines.Bytes(), []byte("\r")), number == 1); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", number+1, err)
	}
	return p.finish()
}

// stars are ratings by the numbers of users and films, in the order of their lines.
type stars struct {
	movieLens
	r *Ratings
}

func (p *stars) line(b []byte, first bool) error {
	if first && p.head != "" {
		if string(b) != p.head {
			return fmt.Errorf("%.60q, want %s", b, p.head)
		}
		return nil
	}
	words := bytes.Split(b, []byte(p.between))
	if len(words) != 4 {
		return fmt.Errorf("%.60q is no rating: want a user, a film, stars and a time with %q "+
			"between them", b, p.between)
	}
	user, err1 := strconv.ParseUint(string(words[0]), 10, 31)
	film, err2 := strconv.ParseUint(string(words[1]), 10, 31)
	value, err3 := strconv.ParseFloat(string(words[2]), 32)
	_, err4 := strconv.ParseUint(string(words[3]), 10, 63)
	switch {
	case errors.Join(err1, err2, err3, err4) != nil || user < 1 || film < 1:
		return fmt.Errorf("%.60q is no rating: want whole numbers of a user and a film, stars "+
			"and a time in seconds", b)
	case !(value >= 0.5 && value <= 5) || 2*value != math.Trunc(2*value):
		return fmt.Errorf("%.20q stars: want 0.5 to 5 by halves", words[2])
	case p.r.Len() == maxRatings:
		return fmt.Errorf("more than %d ratings", maxRatings)
	}
	p.r.add(int32(user), int32(film), float32(value))
	return nil
}

// finish numbers the users and films that there are from 0, and sorts.
func (p *stars) finish() (*Ratings, error) {
	r := p.r
	if r.Len() == 0 {
		return nil, errors.New("no ratings")
	}
	if at := r.twice(); at >= 0 {
		if p.head != "" {
			at++
		}
		return nil, fmt.Errorf("line %d: its user has rated its film before", at+1)
	}
	r.RowNames, r.ColNames = ranked(r.row), ranked(r.col)
	r.Rows, r.Cols = len(r.RowNames), len(r.ColNames)
	if r.Rows > maxSide || r.Cols > maxSide {
		return nil, fmt.Errorf("%d users and %d films: want %d at most", r.Rows, r.Cols, maxSide)
	}
	r.sorted()
	return r, nil
}

// twice is the first element that an earlier one has the place of, -1 if there is none.
func (r *Ratings) twice() int {
	order := make([]int32, r.Len())
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(r.row[a], r.row[b]), cmp.Compare(r.col[a], r.col[b]),
			cmp.Compare(a, b))
	})
	first := int32(-1)
	for k := 1; k < len(order); k++ {
		a, b := order[k-1], order[k]
		if r.row[a] == r.row[b] && r.col[a] == r.col[b] && (first < 0 || b < first) {
			first = b
		}
	}
	return int(first)
}

// ranked puts the place of each number among those that there are in its stead, and is these.
func ranked(x []int32) []int32 {
	there := slices.Compact(slices.Sorted(slices.Values(x)))
	for i, v := range x {
		k, _ := slices.BinarySearch(there, v)
		x[i] = int32(k)
	}
	return there
}
