package command

// Extras are what a program has beyond the plain command. The zero value has nothing.
type Extras struct{}
