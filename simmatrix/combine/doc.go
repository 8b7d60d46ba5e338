// Package combine makes one matrix of several, by a rule or a fitted
// regression, and applies the overrides that people write by hand.
package combine
