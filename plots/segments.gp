# PyTorch's allocator on one device: reserved and allocated memory over time; what its segments hold is
# drawn below, with the frame.

load programs.'/common.gp'
load programs.'/frame.gp'

set lmargin at screen across(area_left)
set rmargin at screen across(area_right)
set tmargin at screen down(area_top)
set bmargin at screen down(panel_bottom)
set border 3 lc rgb line_colour lw 1
set xrange [0:until] noextend
set yrange [0:highest] noextend
set ytics step
set xlabel x_title offset 0, 0.3 textcolor rgb text_colour
set label 2 y_title at screen across(16), 0.5 * (down(area_top) + down(panel_bottom)) \
    center rotate by 90 textcolor rgb text_colour
set grid ytics lt 1 lc rgb grid_colour lw 0.5
set arrow 2 from middle, 0 to middle, highest nohead front dt (2, 3) lw 1 lc rgb line_colour
if (capacity > 0) {
    set arrow 1 from 0, capacity to until, capacity nohead front dt (6, 4) lw 1.5 lc rgb text_colour
}
plot folder.'/allocated.dat' using 1:2 with filledcurves y1=0 lc rgb int(allocated_colour), \
     folder.'/reserved.dat' using 1:2 with lines lw 1.6 lc rgb int(reserved_colour), \
     '+' using (failed_time < 0 ? peak_time : NaN):(peak) every ::0::0 with points pt 6 ps mark(0.9) \
         lw 1.5 lc rgb 0, \
     '+' using (failed_time < 0 ? NaN : failed_time):(0.96 * highest) every ::0::0 with points pt 2 \
         ps mark(0.9) lw 1.8 lc rgb int(bad_colour)
unset multiplot
set output
