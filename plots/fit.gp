# Timings of collectives with their fits, both axes logarithmic; relative residuals below.

load programs.'/common.gp'
load programs.'/frame.gp'

set lmargin at screen across(area_left)
set rmargin at screen across(area_right)
set border 3 lc rgb line_colour lw 1
set logscale x 2
set xrange [x_first:x_last] noextend
set grid ytics lt 1 lc rgb grid_colour lw 0.5
set xtics nomirror ('' x_first) # gnuplot's own, of no use here, are gone with this one

# bytes as powers of two that people read
units = 'B KiB MiB GiB TiB'
do for [i = 0:49] {
    if (2.0**i >= x_first && 2.0**i <= x_last && i % bytes_step == 0) {
        set xtics add (sprintf('%d %s', 2**(i % 10), word(units, i / 10 + 1)) 2.0**i)
    }
}

set tmargin at screen down(area_top)
set bmargin at screen down(upper_end)
set logscale y 10
set yrange [y_lowest:y_highest] noextend
# 1, 2, 5, 10; over many decades only 1, 10
set ytics nomirror ('' y_lowest)
times = 'ns µs ms s'
few = y_highest / y_lowest < 1e4 ? 3 : 1
do for [k = 0:11] {
    do for [digit in '1 2 5'[1:2 * few - 1]] {
        set ytics add (sprintf('%s%s %s', digit, '00'[1:k % 3], word(times, k / 3 + 1)) digit * 10.0**(k - 9))
    }
}
set label 2 y_title at screen across(16), 0.5 * (down(area_top) + down(upper_end)) \
    center rotate by 90 textcolor rgb text_colour
plot for [i = 1:n_series] folder.'/fits.dat' index i - 1 using 1:2 with lines \
         lc rgb int(word(colours, i)) lw 1.3, \
     for [i = 1:n_series] folder.'/points.dat' index i - 1 using 1:($5 > 0 ? NaN : $2) with points \
         pt 6 ps mark(0.5) lc rgb int(word(colours, i)), \
     for [i = 1:n_series] folder.'/points.dat' index i - 1 using 1:($5 > 0 ? $2 : NaN) with points \
         pt 2 ps mark(0.9) lc rgb int(word(colours, i))

unset logscale y
set tmargin at screen down(middle)
set bmargin at screen down(area_bottom)
set yrange [-residual_most:residual_most] noextend
set ytics nomirror autofreq
set format y '%g %%'
set label 1 x_title at screen 0.5 * (across(area_left) + across(area_right)), down(sheet_height - 12) \
    center textcolor rgb text_colour
set label 2 'measured / fitted - 1' at screen across(16), 0.5 * (down(middle) + down(area_bottom)) \
    center rotate by 90 textcolor rgb text_colour
set arrow 1 from x_first, 0 to x_last, 0 nohead lc rgb line_colour lw 0.8 back
# a triangle is beyond the edge: above or below; a bar is the interval of a median
plot for [i = 1:n_series] folder.'/points.dat' index i - 1 using 1:6:(0):($7 - $6) with vectors \
         nohead lc rgb int(word(colours, i)) lw 0.7, \
     for [i = 1:n_series] folder.'/points.dat' index i - 1 using 1:($4 > 0 || $5 > 0 ? NaN : $3) with points \
         pt 6 ps mark(0.5) lc rgb int(word(colours, i)), \
     for [i = 1:n_series] folder.'/points.dat' index i - 1 using 1:($4 == 0 && $5 > 0 ? $3 : NaN) with points \
         pt 2 ps mark(0.9) lc rgb int(word(colours, i)), \
     for [i = 1:n_series] folder.'/points.dat' index i - 1 using 1:($4 > 0 && $3 > 0 ? $3 : NaN) with points \
         pt 9 ps mark(0.8) lc rgb int(word(colours, i)), \
     for [i = 1:n_series] folder.'/points.dat' index i - 1 using 1:($4 > 0 && $3 < 0 ? $3 : NaN) with points \
         pt 11 ps mark(0.8) lc rgb int(word(colours, i))
unset multiplot
set output
