package space

// Reason is why a copy from one space to another is made.
type Reason uint8

// The reasons.
const (
	SwapOut   Reason = iota // an intermediate leaves the device
	SwapIn                  // and comes back
	Stage                   // a variable or constant for those that read it
	Feed                    // an input
	Gradient                // to where the variable is updated
	Result                  // a fetched value
	WriteBack               // an updated variable, to where it is bound

	Reasons // is how many there are
)

// String is the reason in words.
func (r Reason) String() string {
	return [Reasons]string{"swap-out", "swap-in", "stage", "feed", "gradient", "fetch",
		"write-back"}[r]
}
